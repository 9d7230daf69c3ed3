import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { figures, median, round } from './figures.ts';
import { shape, unshape } from './shape.ts';
import { Stack } from './stack.ts';
import { until, Viewer } from './viewer.ts';
import type { PageOptions } from './watched.ts';
import { figuresOf, stackFor, startBrowser } from './which.ts';

let browser: Awaited<ReturnType<typeof startBrowser>>;
let stack: Stack;

beforeAll(async () => {
  stack = await Stack.start(stackFor);
  if (everyPlayer) stack.serveCMAF();
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.stop();
  await stack?.stop();
});

const bound = 1.05;
/** `make e2e-players`: every player. */
const everyPlayer = process.env.LEEWAY_E2E_PLAYERS === 'all';
/** dash.js has to be met before a player is made: its page has the tag without `async`, ahead of it (decision 106). */
const dash: PageOptions = { player: 'dashjs', manifest: '/cmaf/master.mpd', order: 'before' };
/** A household's line, bits per second: on bare loopback a segment costs nothing and the page's scripts are all there is. */
const household = 20_000_000;
/** On this one it is a close call for Video.js whether it gives up its first segment for one of the lowest rendition (docs/conformance.md). */
const thin = 3_200_000;

/** What became of the first segment that the player asked for. */
async function firstSegment(viewer: Viewer): Promise<string> {
  const [first] = (await viewer.player()).asked ?? [];
  if (!first) return 'unknown';
  const { level, at, took, gaveUp } = first;
  if (gaveUp) return `${level}: given up after ${gaveUp.at - at} ms with ${gaveUp.loaded} B`;
  return `${level}: first byte after ${took?.[0]} ms, last ${took?.[1]} ms later`;
}

/** Where the time until the first picture goes: requests by the browser's own account, ms since the page was asked for; -1: none. */
function marks(viewer: Viewer): Promise<Record<string, number>> {
  return viewer.page.evaluate(() => {
    const all = performance.getEntriesByType('resource') as PerformanceResourceTiming[];
    const first = (pattern: RegExp) => all.find(({ name }) => pattern.test(name));
    const [manifest, segment] = [first(/\.(m3u8|mpd)$/), first(/\.(ts|m4s)$/)];
    return {
      player: first(/\/(hls|shaka|dashjs|videojs)\.js$/)?.responseEnd ?? -1,
      manifest: manifest?.startTime ?? -1,
      asked: segment?.startTime ?? -1,
      came: segment?.responseEnd ?? -1,
      adapter: first(/-(shaka|dashjs|videojs)\.js/)?.responseEnd ?? -1,
      // Links follow it. Both take the page's thread, so neither is to come before the picture.
      engine: first(/-engine\.js/)?.startTime ?? -1,
    };
  });
}

/**
 * What the ratio of medians is above, and what it is below, in 95 of 100 resamplings of the loads (bootstrap; a fixed generator, so it
 * repeats).
 */
function bounds(times: { with: number[]; without: number[] }): [atLeast: number, atMost: number] {
  let state = 1;
  const draw = (values: number[]) => {
    return values.map(() => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return values[Math.floor((state / 2 ** 32) * values.length)]!;
    });
  };
  const ratios = Array.from({ length: 1000 }, () => median(draw(times.with)) / median(draw(times.without)));
  ratios.sort((a, b) => a - b);
  return [ratios[50]!, ratios[949]!];
}

afterEach(unshape);

// On the thin line a load takes 5 s: two minutes for all of them, and four where the first ones do not settle it.
test.each([
  { name: 'startup', loads: 24, options: { level: 2 } },
  ...(everyPlayer
    ? [
        { name: 'startup-shaka', loads: 12, options: { level: 0, player: 'shaka' } },
        { name: 'startup-dashjs', loads: 12, options: { ...dash, level: 0 } },
        { name: 'startup-videojs', loads: 12, options: { level: 0, player: 'videojs' } },
        { name: 'startup-videojs-thin', loads: 12, line: thin, options: { level: -1, player: 'videojs' } },
      ]
    : []),
] as {
  name: string;
  loads: number;
  line?: number;
  options: PageOptions;
}[])('startup delay of the same page with and without the script: $name', { timeout: 480_000 }, async ({
  name,
  loads,
  line = household,
  options,
}) => {
  // One viewer stays, so that there is a peer to link to.
  const host = await Viewer.open(browser, stack.page(options), { name: 'host' });
  await host.until('10 s of film', (seen) => seen.currentTime > 10);
  // Page, player, segments and script come by one line.
  shape([{ port: [stack.origin.port('shaped'), Number(new URL(stack.tracker).port)], rate: line }]);
  const times = { with: [] as number[], without: [] as number[] };
  const first = { with: [] as string[], without: [] as string[] };
  const way = { with: [] as Record<string, number>[], without: [] as Record<string, number>[] };
  const ratio = () => median(times.with) / median(times.without);
  // Medians of 24 loads still swing by several per cent when the machine has other work; more loads settle a close call. Half of the
  // loads are enough for a test where they say for certain that the goal is met.
  const settled = () => (times.with.length < loads ? bounds(times)[1] : ratio()) <= bound;
  for (const batch of everyPlayer ? [loads, loads] : [loads / 2, loads / 2, loads]) {
    if (times.with.length && settled()) break;
    for (let i = 0; i < batch; i++) {
      // Alternating, since the machine's other work comes and goes; the order too, since one load warms the next.
      for (const kind of i % 2 ? (['with', 'without'] as const) : (['without', 'with'] as const)) {
        const url = kind === 'with' ? stack.page(options, 'shaped') : stack.plain(options, 'shaped');
        const viewer = await Viewer.open(browser, url, { name: kind });
        times[kind].push((await viewer.until('a first picture', (s) => s.startup >= 0, 20_000)).startup);
        way[kind].push(await marks(viewer));
        if (line === thin) first[kind].push(await firstSegment(viewer));
        // Else a page is compared with itself.
        if (kind === 'with')
          await until('the library runs', async () => /connecting|ready/.test((await viewer.stats())?.state), 10_000);
        else expect(await viewer.stats()).toBeNull();
        await viewer.close();
      }
    }
  }
  const sorted = (values: number[]) => values.map(Math.round).sort((a, b) => a - b);
  const [atLeast, atMost] = bounds(times);
  const medians = (all: Record<string, number>[]) =>
    Object.fromEntries(Object.keys(all[0]!).map((mark) => [mark, Math.round(median(all.map((one) => one[mark]!)))]));
  figures(figuresOf(name), {
    line,
    with: Math.round(median(times.with)),
    without: Math.round(median(times.without)),
    ratio: round(ratio()),
    ratioAtLeast: round(atLeast),
    ratioAtMost: round(atMost),
    loads: times.with.length,
    times: { with: sorted(times.with), without: sorted(times.without) },
    marks: { with: medians(way.with), without: medians(way.without) },
    ...(line === thin && { first }),
  });
  await host.close();
  // What fails is a ratio that is above the goal for certain, not one that a busy machine explains.
  expect(atLeast).toBeLessThanOrEqual(bound);
});
