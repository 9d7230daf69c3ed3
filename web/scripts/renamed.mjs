// node scripts/renamed.mjs writes packages/leeway/renamed.json: the properties that the drop-in's scripts call by short names
// (docs/decisions/0117-internal-names-are-short.md). A test reads it (scripts/renamed/renamed.test.mjs).
import { writeFileSync } from 'node:fs';
import { list, renamable } from './renamed/names.mjs';

writeFileSync(list, `${JSON.stringify(renamable(), null, 2)}\n`);
