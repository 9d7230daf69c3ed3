import { expect, test } from 'vitest';
import { type Adapter, type Bench, caseNames, defineAdapter, runCell, skipped, table, type Verdict } from './index.ts';

const adapter: Adapter = { name: 'player 1', format: 'hls', scripts: [], play: () => {} };

test('an adapter that lacks something says what', () => {
  expect(defineAdapter(adapter)).toBe(adapter);
  for (const [change, message] of [
    [{ name: '' }, 'an adapter needs a name'],
    [{ format: 'smooth' }, 'player 1: format is "hls" or "dash", not "smooth"'],
    [{ scripts: undefined }, 'player 1: scripts is a list'],
    [{ play: 'play()' }, 'player 1: play(stage)'],
  ] as const) {
    expect(() => defineAdapter({ ...adapter, ...change } as unknown as Adapter)).toThrow(message);
  }
});

test('a cell is skipped by its case, or in one browser', async () => {
  const skips: Adapter['skips'] = { live: 'issue 1', 'vod in Firefox': 'issue 2' };
  const one = { ...adapter, skips };
  expect(skipped(one, 'live', 'Chromium')).toBe('issue 1');
  expect(skipped(one, 'vod', 'Chromium')).toBeUndefined();
  expect(skipped(one, 'vod', 'Firefox')).toBe('issue 2');
  const bench = { browser: { name: 'Firefox' } } as Bench;
  expect(await runCell(bench, one, 'vod')).toMatchObject({ result: 'skipped', reason: 'issue 2', case: 'vod' });
});

test('the table has a row for every case, and reasons once', () => {
  const verdict = (change: Partial<Verdict>): Verdict => ({
    adapter: 'player 1',
    case: 'vod',
    browser: 'Chromium',
    result: 'passes',
    ...change,
  });
  const text = table([
    verdict({}),
    verdict({ case: 'live', result: 'skipped', reason: 'issue 1' }),
    verdict({ case: 'live', adapter: 'player 2', result: 'skipped', reason: 'issue 1' }),
    verdict({ browser: 'Firefox', result: 'fails', reason: 'no picture' }),
  ]);
  expect(text).toContain('| Chromium | player 1 | player 2 |');
  expect(text).toContain('| video on demand | passes |  |');
  expect(text).toContain('| video on demand | **fails** |  |');
  expect(text.match(/^\| /gm)).toHaveLength(2 * (caseNames.length + 2));
  expect(text).toContain('- player 1, live, Chromium; player 2, live, Chromium: skipped: issue 1');
});
