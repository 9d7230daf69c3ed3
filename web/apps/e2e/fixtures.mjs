// Makes what the conformance kit plays, where it is not in the cache yet: npm has a part of it, and no registry is reached from inside the
// tests' network.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const work = mkdtempSync(join(tmpdir(), 'leeway-fixtures-'));
const outfile = join(work, 'make.mjs');
const entry = new URL('../../packages/conformance/src/fixtures/make.ts', import.meta.url).pathname;
try {
  await build({ entryPoints: [entry], outfile, bundle: true, platform: 'node', format: 'esm' });
  (await import(pathToFileURL(outfile).href)).fixturesDir();
} finally {
  rmSync(work, { recursive: true, force: true });
}
