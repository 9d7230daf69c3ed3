/** The drop-in calls by short names what nothing else knows: what something else may know is not on the list. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { programOf } from '../browsers/uses.mjs';
import { web } from '../declarations.mjs';
import { list, namesOf, renamable } from './names.mjs';

/** The compiler reads its declarations and the packages. */
const slow = 120_000;

test(
  'nothing else knows the names that the build takes',
  () => {
    const names = new Set(renamable());
    const known = JSON.parse(readFileSync(list, 'utf8')).filter((name) => !names.has(name));
    expect(known, 'run "npm run renamed" in web/').toEqual([]);
  },
  slow,
);

describe('of a name that is ours', () => {
  const cases = [
    ['only', 'const a = { oursAlone: 1 };\na.oursAlone;', true],
    ['and of a browser', 'const a = { innerWidth: 1 };\na.innerWidth;'],
    ['and of the public API', 'const a = { durationMs: 1 };\na.durationMs;'],
    ['and on the wire', 'const a = { our_name: 1 };\na.our_name;'],
    ['and of a module', 'export const oursAlone = 1;\nconst a = { oursAlone };\na.oursAlone;'],
    ['and a string', "const a = { oursAlone: 1 };\nif ('oursAlone' in a) a.oursAlone;"],
    ['and in a pattern', 'const a = { oursAlone: 1 };\n/a|oursAlone/.test("");\na.oursAlone;'],
    ['and found by a string', 'const a = { oursAlone: 1 };\nfor (const name in a) a[name as keyof typeof a];'],
    ['and found by any string', 'const a: Record<string, number> = { oursAlone: 1 };\na["b"];'],
    ['and of what is read', 'interface A { oursAlone: number }\nconst a: A = JSON.parse("");\na.oursAlone;'],
    ['and of what is written', 'const a = { oursAlone: 1 };\nJSON.stringify([a]);\npostMessage(a);'],
    ['and of what is not ours', 'interface A { oursAlone: number }\n(navigator as unknown as A).oursAlone;'],
    [
      'and of what the declarations lack',
      'interface A { oursAlone?: number }\n(navigator as Navigator & { connection?: A }).connection?.oursAlone;',
    ],
    [
      'and of what something is found to be',
      'interface A { oursAlone: number }\nconst isA = (a: unknown): a is A => !!a;\nisA(0);',
    ],
  ];
  const fileOf = (n) => join(web, `packages/core/src/made-up-${n}.ts`);
  let program;
  beforeAll(() => {
    const texts = new Map(cases.map(([, text], n) => [fileOf(n), `${text}\nexport {};\n`]));
    program = programOf([...texts.keys()], texts);
  }, slow);

  test.each(cases.map(([name, , alone = false], n) => [name, alone, n]))('%s: %s', (_, alone, n) => {
    expect(namesOf(program, [fileOf(n)])).toEqual(alone ? ['oursAlone'] : []);
  });
});
