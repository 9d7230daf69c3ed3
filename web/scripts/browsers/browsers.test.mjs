/** Each API of a browser that the packages use is on docs/browsers.md, with what happens without it; what is needed is in the oldest browsers. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { web } from '../declarations.mjs';
import { byVersion, lookUp } from './data.mjs';
import { page, survey, surveyPackages } from './page.mjs';
import { programOf, usesOf } from './uses.mjs';

/** The compiler reads its declarations and the packages. */
const slow = 120_000;

test(
  'what the packages use has rows, what they need is in the oldest browsers, and the page says so',
  () => {
    const found = surveyPackages();
    expect(found.wrong).toEqual([]);
    expect(found.dom.length).toBeGreaterThan(100);
    expect(readFileSync(join(web, '../docs/browsers.md'), 'utf8'), 'run "npm run browsers" in web/').toBe(page(found));
  },
  slow,
);

describe('a use is found', () => {
  const cases = [
    ['a global', "new Notification('');", /^Notification\.Notification .*made-up.* has no row/],
    ['a member', 'document.startViewTransition?.(() => {});', /^Document\.startViewTransition .*needed, and/],
    [
      'a member of what a call returns',
      'document.createElement("video").requestVideoFrameCallback(() => {});',
      /requestVideoFrameCallback .*needed, and Firefox/,
    ],
    [
      'what is taken apart',
      'const { gpu } = navigator as unknown as Navigator & { gpu: object }; gpu;',
      /^Navigator\.gpu .*no row/,
    ],
    [
      'what the declarations lack',
      '(navigator as { bluetooth?: object }).bluetooth;',
      /^Navigator\.bluetooth .*no row/,
    ],
    ['a global by globalThis', 'globalThis.cookieStore;', /cookieStore .*no row/],
    ['a handler', 'document.createElement("a").onbeforematch = null;', /beforematch.*needed, and/],
    [
      'an event',
      'document.addEventListener("freeze", () => {});',
      /^Document\.freeze_event .*needed, and Firefox has it since never/,
    ],
    ['a part of the language', '[1].toSorted();', /^Array\.toSorted .*needed, and Safari has it since 16;/],
    ['syntax', 'export const a = /(?<=b)c/;', /lookbehind_assertion .*needed, and Safari has it since 16\.4/],
    ['a static block', 'export class A { static { A.name; } }', /initialization_blocks .*Safari has it since 16\.4/],
    ['no type', 'export interface A { b: Notification }\nexport type C = typeof Notification;', undefined],
  ];
  const fileOf = (n) => join(web, `packages/core/src/made-up-${n}.ts`);
  let program;
  beforeAll(() => {
    const texts = new Map(cases.map(([, text], n) => [fileOf(n), text]));
    program = programOf([...texts.keys()], texts);
  }, slow);

  test.each(cases.map(([name, , sentence], n) => [name, n, sentence]))('%s', (_, n, sentence) => {
    const { wrong } = survey(usesOf(program, [fileOf(n)]));
    // One file does not use what the rows are about.
    const found = wrong.filter((one) => !one.startsWith('Nothing uses'));
    if (sentence) expect(found).toContainEqual(expect.stringMatching(sentence));
    else expect(found).toEqual([]);
  });
});

test('versions are in order, and what a browser does not have is after all', () => {
  expect(['9', '15.4', null, '15.10', '16'].sort(byVersion)).toEqual(['9', '15.4', '15.10', '16', null]);
});

test('what is behind a flag is not there', () => {
  expect(lookUp('language', ['ObjectConstructor.hasOwn']).since).toMatchObject({ safari: '15.4', firefox: '92' });
  expect(lookUp('dom', ['Navigator.getBattery']).since).toMatchObject({ safari: null, firefox: null });
});
