import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

/** What of the repository's pages and panels shows names: of peers, titles, playlists, trackers and recordings. */
const shown = ['packages/panel', 'packages/leeway', 'packages/core', 'apps/demo', 'apps/check', 'apps/doctor'];

/** What makes markup, or a program, of text. */
const makes =
  /\b(innerHTML|outerHTML|insertAdjacentHTML|srcdoc|createContextualFragment|parseFromString|setHTMLUnsafe|eval)\b|document\.write|new Function|javascript:/;

/** The face of a viewer in the demo's picture, of constants. */
const allowed = ['apps/demo/src/picture.ts'];

it.each(shown)('no text of others becomes markup in %s', (of) => {
  const root = new URL('../../../', import.meta.url);
  const files = readdirSync(new URL(`${of}/src`, root), { recursive: true, encoding: 'utf8' });
  const sources = files
    .filter((file) => /\.ts$/.test(file) && !/\.test\.ts$/.test(file))
    .map((file) => `${of}/src/${file}`);
  const lines = (file: string) => readFileSync(new URL(file, root), 'utf8').split('\n');
  expect(sources.length).toBeGreaterThan(1);
  expect(sources.filter((file) => !allowed.includes(file) && lines(file).some((line) => makes.test(line)))).toEqual([]);
});
