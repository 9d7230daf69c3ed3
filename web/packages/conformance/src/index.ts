/** One suite for every player and browser: `defineAdapter` makes a row, `runCell` puts it to a case. */

export {
  type Adapter,
  type BrowserName,
  defineAdapter,
  type Format,
  type Received,
  type Script,
  type Stage,
} from './adapter.ts';
export type { Asker, Bench, Body, Fault, KitBrowser, KitOrigin, KitPage, OriginRequest } from './bench.ts';
export { fixturesDir } from './fixtures/make.ts';
export { type Fixture, type FixtureName, fixtures } from './fixtures/recipe.ts';
export { type CaseName, caseNames } from './names.ts';
export { table } from './report.ts';
export { type Result, runCell, skipped, type Verdict, warmUp } from './run.ts';
