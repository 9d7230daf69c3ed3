/** Pages at the edge of a low-latency stream push its parts to each other, and stay as near to the clock as a page without the script. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures, round } from './figures.ts';
import { Firefox } from './firefox.ts';
import { partsViewer, polluter } from './headless.ts';
import { type Given, given, recordGiven } from './recorder.ts';
import { Demo, metrics, sum } from './service.ts';
import { pause, until, Viewer } from './viewer.ts';

/** What is watched of it, after all are there. */
const watchMs = 40_000;
/** The rendition that all watch: pages with a fixed one choose none. */
const rendition = '360p';
/** How much later than without the script a page may play at most, ms: a player joins behind a part, of half a second. */
const lagBound = 500;
const partPath = /\/live-\d+\.\d+\.m4s$/;

interface Felt {
  latency_ms: number | null;
  stalls: number;
  played_ms: number;
}

interface Watched extends Felt {
  name: string;
  bytes: Record<'origin' | 'seed' | 'peer', number>;
  uploaded: number;
  rejected: number;
  off: string | null;
  parts: number;
  wrong: string[];
  unlinked: { peer: string; reason: string; banned: boolean }[];
}

interface DemoWindow {
  __demo: { stats(): Felt };
  __unlinked?: Watched['unlinked'];
  // biome-ignore lint/suspicious/noExplicitAny: the library of the page
  leeway?: any;
}

let browser: Chromium;
let demo: Demo;

beforeAll(async () => {
  demo = await Demo.start(['--live', '--low-latency']);
  browser = await Chromium.start();
});
afterAll(async () => {
  await browser?.stop();
  await demo?.stop();
});

const manifest = () => `${demo.url}/media/live/master.m3u8`;

async function open(by: { window: Chromium['window'] }, name: string, query = ''): Promise<Viewer> {
  const viewer = await Viewer.open(by, `${demo.url}/?level=1${query}`, { name, before: recordGiven });
  if (!query.includes('leeway=off')) {
    await viewer.page.waitForFunction(() => (window as unknown as DemoWindow).leeway !== undefined);
    await viewer.page.evaluate(() => {
      const page = window as unknown as DemoWindow;
      const unlinked: Watched['unlinked'] = [];
      page.__unlinked = unlinked;
      page.leeway.on('unlink', ({ peer, reason, banned }: Watched['unlinked'][number]) =>
        unlinked.push({ peer, reason, banned }),
      );
    });
  }
  await viewer.until('a first picture', (seen) => seen.startup >= 0);
  return viewer;
}

/** Whether a page has had parts from other viewers: it takes a link and a place in a tree. */
const fed = async (viewer: Viewer): Promise<boolean> =>
  ((await viewer.stats())?.titles[0]?.totals.bytes.peer ?? 0) > 0;

async function watched(viewer: Viewer, digests: Record<string, string>): Promise<Watched> {
  const felt = await viewer.page.evaluate(() => (window as unknown as DemoWindow).__demo.stats());
  const unlinked = await viewer.page.evaluate(() => (window as unknown as DemoWindow).__unlinked ?? []);
  const title = (await viewer.stats())?.titles[0];
  const all: Given[] = await given(viewer);
  const differs = ({ path, digest }: Given) => path in digests && digests[path] !== digest;
  return {
    name: viewer.name,
    latency_ms: Math.round(felt.latency_ms ?? 0),
    stalls: felt.stalls,
    played_ms: Math.round(felt.played_ms),
    bytes: title?.totals.bytes,
    uploaded: title?.totals.uploaded.direct ?? 0,
    rejected: title?.totals.rejected_bytes ?? 0,
    off: title?.off ?? null,
    parts: all.filter(({ path }) => partPath.test(path)).length,
    wrong: all.filter(differs).map(({ path }) => path),
    unlinked,
  };
}

/** What holds for every page beside one without the script. */
function unharmed(pages: Watched[], alone: Watched): void {
  for (const page of pages) {
    expect(page.parts, `${page.name}: parts`).toBeGreaterThan(watchMs / 1000);
    expect(page.wrong, page.name).toEqual([]);
    expect(page.played_ms, page.name).toBeGreaterThan(watchMs * 0.7);
    expect(page.latency_ms!, page.name).toBeLessThan(alone.latency_ms! + lagBound);
    expect(page.stalls, page.name).toBeLessThanOrEqual(alone.stalls);
  }
}

test('three pages and a headless viewer push parts to each other', async () => {
  const headless = partsViewer(manifest(), demo.url, `${watchMs / 1000 + 30}s`, rendition);
  const viewers = [
    await open(browser, 'first'),
    await open(browser, 'second', '&viewer=2'),
    await open(browser, 'third', '&viewer=3'),
  ];
  const alone = await open(browser, 'alone', '&viewer=4&leeway=off');
  await until('bytes from viewers', async () => (await Promise.all(viewers.map(fed))).every(Boolean));
  await pause(watchMs);
  const digests = await demo.digests();
  const pages = await Promise.all(viewers.map((viewer) => watched(viewer, digests)));
  const plain = await watched(alone, digests);
  const other = await headless;
  const served = await metrics(demo.admin);
  const signed = sum(served, 'leeway_seed_part_certificate_seconds_count');
  const total = pages.reduce((n, { bytes }) => n + bytes.origin + bytes.seed + bytes.peer, 0);
  const share = (source: 'seed' | 'peer') => round(pages.reduce((n, { bytes }) => n + bytes[source], 0) / total);
  figures('lowlatency', { pages, plain, headless: other.stats, seed: share('seed'), peer: share('peer'), signed });

  unharmed(pages, plain);
  expect(signed, 'parts that the seed has signed').toBeGreaterThan(watchMs / 1000);
  for (const page of pages) {
    expect(page.bytes.peer, `${page.name}: from viewers`).toBeGreaterThan(100_000);
    expect(page.rejected, page.name).toBe(0);
    expect(page.unlinked.filter(({ banned }) => banned)).toEqual([]);
  }
  // The seed feeds two children of four: what the others have was pushed on. The headless viewer links to pages alone.
  expect(pages.filter(({ uploaded }) => uploaded > 100_000).length, 'pages that push').toBeGreaterThanOrEqual(2);
  expect(other.stats.bytes.peer!, 'headless: from pages').toBeGreaterThan(100_000);
  expect(other.stats.uploaded?.direct ?? 0, 'headless: to pages').toBeGreaterThan(100_000);
  expect(other.banned).toBe(0);
  expect(share('seed') + share('peer')).toBeGreaterThan(0.5);
  // What the page shows of it: the lag, and the colors of what came.
  const shown = await viewers[1]!.page.evaluate(() => ({
    lag: Number.parseFloat(document.querySelector('#lag')!.textContent!),
    cells: document.querySelectorAll('.cell[data-source]').length,
    shared: document.querySelectorAll('.cell[data-source="peer"], .cell[data-source="seed"]').length,
  }));
  expect(shown.lag, 'seconds behind live').toBeGreaterThan(1);
  expect(shown.lag, 'seconds behind live').toBeLessThan(5);
  expect(shown.shared, `of ${shown.cells} segments`).toBeGreaterThan(5);
  for (const viewer of [...viewers, alone]) expect(viewer.consoleErrors(), viewer.name).toEqual([]);
  await Promise.all([...viewers, alone].map((viewer) => viewer.close()));
});

test('a viewer that pushes wrong pieces is banned by each page at the first, and none is played', async () => {
  const wicked = polluter(manifest(), watchMs / 1000 + 20);
  const viewers = [];
  for (const name of ['first', 'second', 'third']) viewers.push(await open(browser, name, `&viewer=${name}`));
  const alone = await open(browser, 'alone', '&leeway=off');
  await pause(watchMs);
  const digests = await demo.digests();
  const pages = await Promise.all(viewers.map((viewer) => watched(viewer, digests)));
  const plain = await watched(alone, digests);
  const peer = await wicked;
  const blames = pages.flatMap(({ unlinked }) => unlinked.filter(({ banned }) => banned));
  figures('lowlatency-polluted', { pages, plain, peer });

  unharmed(pages, plain);
  expect(blames.length, 'pages that it has pushed to').toBeGreaterThan(0);
  for (const blame of blames) expect(blame).toEqual({ peer, reason: 'bad-piece', banned: true });
  for (const page of pages) {
    const met = page.unlinked.some(({ banned }) => banned);
    // At the first wrong piece; others may have been on their way.
    expect(page.rejected > 0, `${page.name}: ${page.rejected} wrong bytes`).toBe(met);
    expect(page.rejected, page.name).toBeLessThan(16 * 16_384);
  }
  for (const viewer of viewers) expect(viewer.consoleErrors(), viewer.name).toEqual([]);
  await Promise.all([...viewers, alone].map((viewer) => viewer.close()));
});

test('a Firefox gets parts of Chromium, and pushes some', async () => {
  const firefox = await Firefox.start();
  try {
    const viewers = [await open(browser, 'Chromium'), await open(firefox, 'Firefox', '&viewer=2')];
    viewers.push(await open(browser, 'second Chromium', '&viewer=3'));
    await until('bytes from viewers', async () => (await Promise.all(viewers.map(fed))).some(Boolean));
    await pause(watchMs / 2);
    const digests = await demo.digests();
    const pages = await Promise.all(viewers.map((viewer) => watched(viewer, digests)));
    figures('lowlatency-firefox', { version: await firefox.version(), pages });
    for (const page of pages) expect(page.wrong, page.name).toEqual([]);
    const { bytes, uploaded, parts } = pages[1]!;
    expect(parts).toBeGreaterThan(watchMs / 2000);
    expect(bytes.seed + bytes.peer, 'from others').toBeGreaterThan(100_000);
    expect(uploaded, 'to others').toBeGreaterThan(0);
    await Promise.all(viewers.map((viewer) => viewer.close()));
  } finally {
    await firefox.stop();
  }
});
