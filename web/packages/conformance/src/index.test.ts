import { afterEach, expect, test, vi } from 'vitest';
import type { KitPage } from './bench.ts';
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

afterEach(() => {
  vi.useRealTimers();
});

const still = { startup: 0, stalls: [], duration: 60, bufferedAhead: 0, ended: false, error: '' };
const page = { pageErrors: [], joined: true, shared: [], notices: [], contradictions: 0, links: 0 };

/** Runs a cell of low latency whose pages, with Leeway and without, have a picture at the same moments. */
async function lowLatency(at: (ms: number) => { currentTime: number; played?: number }) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
  const opened: { prefix: string; plain: boolean }[] = [];
  const folders: string[] = [];
  const window = async () => {
    let beganAt = 0;
    const remote = {
      goto: async (url: string) => {
        beganAt = performance.now();
        const { pathname, searchParams } = new URL(url);
        opened.push({ prefix: pathname, plain: !('tracker' in JSON.parse(searchParams.get('o')!)) });
      },
      evaluate: async () => {
        const { currentTime, played = currentTime - 8 } = at(performance.now() - beganAt);
        const picture = { ...still, currentTime, played };
        return { ...page, players: [{ picture, received: [], errors: [] }] };
      },
      close: async () => {},
    };
    return remote as unknown as KitPage;
  };
  const bench: Bench = {
    browser: { name: 'Firefox', window },
    origin: {
      url: (path) => `http://origin.test${path}`,
      mount: (prefix) => {
        folders.push(prefix);
        return () => {};
      },
      requests: () => [],
      fault: () => () => {},
    },
    tracker: 'http://tracker.test',
    fixtures: '',
  };
  const cell = runCell(bench, adapter, 'low-latency');
  await vi.advanceTimersByTimeAsync(300_000);
  return { reason: (await cell).reason ?? '', opened, folders };
}

test('a live picture that stands still without Leeway, too, does not play either', async () => {
  const { reason } = await lowLatency(() => ({ currentTime: 12 }));
  expect(reason).toContain('host: only 12 s played');
  expect(reason).toMatch(/without Leeway it does not play either$/);
  // As far as Shaka jumps while it waits: that is no playing.
  expect((await lowLatency((ms) => ({ currentTime: ms < 1000 ? 8 : 14 }))).reason).toMatch(
    /without Leeway it does not play either$/,
  );
  // A quarter of each two seconds is in the buffer, and the player jumps over the others.
  const jumps = await lowLatency((ms) => ({ currentTime: 8 + ms / 1000, played: ms / 4000 }));
  expect(jumps.reason).toContain('s played of 13, gaps jumped');
  expect(jumps.reason).toMatch(/without Leeway it does not play either$/);
  // No segment came, which fails the cell; the picture went on.
  expect((await lowLatency((ms) => ({ currentTime: 8 + ms / 1000 }))).reason).toMatch(/without Leeway it plays$/);
});

test('the page without Leeway has a live stream that begins with it', async () => {
  const { opened, folders } = await lowLatency(() => ({ currentTime: 12 }));
  expect(opened.map(({ plain }) => plain)).toEqual([false, false, true]);
  expect(folders).toHaveLength(2);
  expect(opened[2]!.prefix).toBe(`${folders[1]}watch.html`);
  expect(folders[1]).not.toBe(folders[0]);
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
