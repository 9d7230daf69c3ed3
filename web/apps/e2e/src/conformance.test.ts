import { appendFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Adapter,
  type Bench,
  caseNames,
  fixturesDir,
  runCell,
  skipped,
  table,
  type Verdict,
  warmUp,
} from '@leeway/conformance';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { kitBrowser, kitOrigin } from './conformance/bench.ts';
import { rows as ours } from './conformance/rows.ts';
import { Firefox } from './firefox.ts';
import { buildDir } from './paths.ts';
import { Stack } from './stack.ts';

/** `all`, or patterns of cells ("player case browser"), by commas. Without it: what each change is tested with. */
const wanted = process.env.LEEWAY_CONFORMANCE ?? '';
const patterns = wanted.split(',').filter(Boolean);

/** One cell of each kind that a change may break, as many as CI has time for; the rest is for `make conformance`. */
const quick = new Set([
  'hls.js 1.7 byte-ranges Chromium',
  'hls.js 1.7 clear-key Chromium',
  'hls.js 1.7 live Chromium',
  'hls.js 1.7 low-latency Chromium',
  'hls.js 1.7 separate-audio Firefox',
  'Shaka 5.2 cmcd Chromium',
  'Shaka 5.2 key-rotation Chromium',
  'Video.js 8 discontinuities Chromium',
  'Video.js 8 origin-errors Firefox',
  'Video.js 10 low-latency Chromium',
]);
/** A file whose exports are the rows instead: players of one's own. */
const other = process.env.LEEWAY_CONFORMANCE_ROWS;
const rows: readonly Adapter[] = other ? Object.values(await import(other)) : ours;

const results = join(buildDir, 'conformance.jsonl');
const verdicts: Verdict[] = [];

const chosen = (adapter: Adapter, name: string, browser: string): boolean => {
  const cell = `${adapter.name} ${name} ${browser}`;
  if (wanted === 'all' || (other && !wanted)) return true;
  return wanted ? patterns.some((pattern) => new RegExp(pattern).test(cell)) : quick.has(cell);
};

/** Firefox's viewers are tabs of one window, of which each hides the others: without these their timers have a second. */
const unhidden = {
  'dom.min_background_timeout_value': 4,
  'dom.min_background_timeout_value_without_budget_throttling': 4,
};
const browsers = [kitBrowser('Chromium', () => Chromium.start()), kitBrowser('Firefox', () => Firefox.start(unhidden))];
const cellsOf = ({ name: browser }: (typeof browsers)[number]) =>
  rows.flatMap((adapter) =>
    caseNames.filter((name) => chosen(adapter, name, browser)).map((name) => ({ adapter, name })),
  );
// A row that has another name or a new exception would leave cells of these out without a word.
const tested = browsers.flatMap(({ name: browser }) =>
  ours.flatMap((row) =>
    caseNames.filter((name) => !skipped(row, name, browser)).map((name) => `${row.name} ${name} ${browser}`),
  ),
);
const lost = [...quick].filter((cell) => !tested.includes(cell));
if (lost.length) throw new Error(`conformance: there are no such cells: ${lost.join(', ')}.`);
let stack: Stack;
let bench: Omit<Bench, 'browser'>;

beforeAll(async () => {
  const fixtures = fixturesDir();
  // Firefox makes no pair with a loopback address.
  stack = await Stack.start({ split: true, publicSeed: true });
  bench = { origin: kitOrigin(stack.origin), tracker: stack.tracker, fixtures };
  rmSync(results, { force: true });
  for (const browser of browsers) {
    const [first] = cellsOf(browser);
    // A browser that does not start fails its own cells, and those alone.
    if (first) await warmUp({ ...bench, browser }, first.adapter).catch(() => {});
  }
});
afterAll(async () => {
  writeFileSync(join(buildDir, 'conformance.md'), `${table(verdicts)}\n`);
  await Promise.all(browsers.map((browser) => browser.stop()));
  await stack?.stop();
});

for (const browser of browsers) {
  const cells = cellsOf(browser);
  if (cells.length === 0) continue;
  describe.concurrent(browser.name, () => {
    test.for(cells)('$name: $adapter.name', { timeout: 180_000 }, async ({ adapter, name }, context) => {
      const verdict = await runCell({ ...bench, browser }, adapter, name);
      verdicts.push(verdict);
      appendFileSync(results, `${JSON.stringify(verdict)}\n`);
      if (verdict.result === 'skipped') context.skip(verdict.reason);
      expect(verdict.reason).toBeUndefined();
    });
  });
}
