/** Pages at the edge of a low-latency stream push its parts to each other, and stay as near to the clock as a page without the script. */
import { afterAll, afterEach, beforeAll, expect, type TestContext, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures, round } from './figures.ts';
import { Firefox } from './firefox.ts';
import { partsViewer, polluter } from './headless.ts';
import { type Given, given, recordAppends, recordGiven, recordVideojs } from './recorder.ts';
import { Demo, metrics, sum } from './service.ts';
import { pause, until, Viewer } from './viewer.ts';

/** What is watched of it, after all are there. */
const watchMs = 30_000;
/** The rendition that all watch: pages with a fixed one choose none. */
const rendition = '360p';
/** How much further than a page without the script one may fall behind while it is watched, ms. */
const lagBound = 150;
/** A page without the script that is further behind the clock had no processor: it is 2.0 to 2.4 s on two that have time left, ms. */
const slowLag = 4_000;
const partPath = /\/live-\d+\.\d+\.m4s$/;

interface Felt {
  /** While it is watched. A page that begins while others do may have one, with the script and without. */
  stalls: number;
  played_ms: number;
}

interface Watched extends Felt {
  name: string;
  /** Behind the clock of the stream at last, and what of it came while the page was watched, ms. */
  lag: number;
  fell: number;
  bytes: Record<'origin' | 'seed' | 'peer', number>;
  uploaded: number;
  rejected: number;
  off: string | null;
  parts: number;
  wrong: string[];
  unlinked: { peer: string; reason: string; banned: boolean }[];
  /** Verified bytes from each that is linked, and to it. */
  peers: { peer: string; downloaded: number; uploaded: number }[];
}

/** A page, and how far it was behind the clock when it was looked at first. */
interface Watching {
  viewer: Viewer;
  lag: number;
  stalls: number;
}

interface DemoWindow {
  __demo: { stats(): Felt };
  __unlinked?: Watched['unlinked'];
  // biome-ignore lint/suspicious/noExplicitAny: the library of the page
  leeway?: any;
}

let browser: Chromium;
let demo: Demo;
const opened: Viewer[] = [];

beforeAll(async () => {
  demo = await Demo.start(['--live', '--low-latency']);
  browser = await Chromium.start();
});
afterAll(async () => {
  await browser?.stop();
  await demo?.stop();
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((viewer) => viewer.close()));
});

const manifest = () => `${demo.url}/media/live/master.m3u8`;

async function open(
  by: { window: Chromium['window'] },
  name: string,
  query = '',
  level = 1,
  before = recordGiven,
): Promise<Viewer> {
  const viewer = await Viewer.open(by, `${demo.url}/?level=${level}${query}`, { name, before });
  opened.push(viewer);
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
const fed = async (viewer: Viewer): Promise<boolean> => ((await viewer.stats())?.titles[0]?.totals.bytes.peer ?? 0) > 0;

const feltBy = (viewer: Viewer): Promise<Felt> =>
  viewer.page.evaluate(() => (window as unknown as DemoWindow).__demo.stats());

/** What the page says of its lag, ms. */
const lagOf = (viewer: Viewer): Promise<number> =>
  viewer.page.evaluate(() => Math.round(Number.parseFloat(document.querySelector('#lag')!.textContent!) * 1000));

/** Lets time pass, and says what came of the pages. */
async function watch(viewers: Viewer[], ms = watchMs): Promise<Watched[]> {
  await pause(2_000);
  const before = await Promise.all(
    viewers.map(async (viewer) => ({ viewer, lag: await lagOf(viewer), stalls: (await feltBy(viewer)).stalls })),
  );
  await pause(ms);
  const digests = await demo.digests();
  return Promise.all(before.map((each) => watched(each, digests)));
}

async function watched({ viewer, lag: before, stalls }: Watching, digests: Record<string, string>): Promise<Watched> {
  const lag = await lagOf(viewer);
  const felt = await feltBy(viewer);
  const unlinked = await viewer.page.evaluate(() => (window as unknown as DemoWindow).__unlinked ?? []);
  const title = (await viewer.stats())?.titles[0];
  const all: Given[] = await given(viewer);
  const differs = ({ path, digest }: Given) => path in digests && digests[path] !== digest;
  return {
    name: viewer.name,
    lag,
    fell: lag - before,
    stalls: felt.stalls - stalls,
    played_ms: Math.round(felt.played_ms),
    bytes: title?.totals.bytes,
    uploaded: title?.totals.uploaded.direct ?? 0,
    rejected: title?.totals.rejected_bytes ?? 0,
    off: title?.off ?? null,
    parts: all.filter(({ path }) => partPath.test(path)).length,
    wrong: all.filter(differs).map(({ path }) => path),
    unlinked,
    peers: (title?.engine?.peers ?? []).map(({ peer, downloaded, uploaded }: Watched['peers'][number]) => ({
      peer,
      downloaded,
      uploaded,
    })),
  };
}

/** Parts come, and none is wrong, on any machine. */
function intact(pages: Watched[]): void {
  for (const page of pages) {
    expect(page.parts, `${page.name}: parts`).toBeGreaterThan(watchMs / 1000);
    expect(page.wrong, page.name).toEqual([]);
  }
}

/** What holds for every page beside one without the script, where that one keeps up with the clock. Else there is no verdict. */
function unharmed(pages: Watched[], alone: Watched, skip: TestContext['skip']): void {
  skip(alone.lag > slowLag, `the machine was too slow: ${alone.lag} ms behind the clock without the script`);
  for (const page of pages) {
    expect(page.played_ms, page.name).toBeGreaterThan(watchMs * 0.7);
    expect(page.fell, `${page.name}: behind the clock by ${page.lag} ms`).toBeLessThan(alone.fell + lagBound);
    expect(page.stalls, page.name).toBeLessThanOrEqual(alone.stalls);
  }
}

const sumOf = (numbers: number[]): number => numbers.reduce((n, one) => n + one, 0);

/** The share of what pages were given that is of a source. */
function shareOf(pages: Watched[], source: 'seed' | 'peer'): number {
  const total = sumOf(pages.map(({ bytes }) => bytes.origin + bytes.seed + bytes.peer));
  return round(sumOf(pages.map(({ bytes }) => bytes[source])) / total);
}

/** What pages have had from a peer, or given to it. */
const amount = (pages: Watched[], peer: string, way: 'downloaded' | 'uploaded'): number =>
  sumOf(pages.flatMap(({ peers }) => peers.filter((link) => link.peer === peer).map((link) => link[way])));

/** A headless viewer, for so long at most. */
const partsFor = (ms: number) => partsViewer(manifest(), demo.url, `${ms / 1000}s`, rendition);

test('pages take parts of headless viewers, and fare as a page without the script', async ({ skip }) => {
  // The seed feeds the two that come first.
  const early = [partsFor(watchMs + 45_000), partsFor(watchMs + 45_000)];
  await pause(5_000);
  const viewers: Viewer[] = [];
  for (const name of ['first', 'second', 'third']) viewers.push(await open(browser, name, `&viewer=${name}`));
  const alone = await open(browser, 'alone', '&leeway=off');
  await until('bytes from viewers', async () => (await Promise.all(viewers.map(fed))).some(Boolean));
  const pages = await watch([...viewers, alone]);
  const plain = pages.pop()!;
  const shown = await viewers[1]!.page.evaluate(() => ({
    cells: document.querySelectorAll('.cell[data-source]').length,
    shared: document.querySelectorAll('.cell[data-source="peer"], .cell[data-source="seed"]').length,
  }));
  const others = await Promise.all(early.map((leave) => leave()));
  const served = await metrics(demo.admin);
  const signed = sum(served, 'leeway_seed_part_certificate_seconds_count');
  const counted = sum(served, 'leeway_viewer_parts_total', 'source="peer"');
  const figure = { seed: shareOf(pages, 'seed'), peer: shareOf(pages, 'peer'), signed, counted, shown };
  figures('lowlatency', { ...figure, pages, plain, headless: others.map((one) => one.stats) });

  intact(pages);
  expect(signed, 'parts that the seed has signed').toBeGreaterThan(watchMs / 1000);
  expect(counted, 'parts from viewers, as the tracker was told').toBeGreaterThan(10);
  for (const page of pages) {
    expect(page.rejected, page.name).toBe(0);
    expect(page.unlinked.filter(({ banned }) => banned)).toEqual([]);
  }
  const theirs = sumOf(others.map((one) => amount(pages, one.session, 'downloaded')));
  expect(theirs, 'from headless viewers').toBeGreaterThan(500_000);
  for (const other of others) expect(other.banned).toBe(0);
  for (const viewer of [...viewers, alone]) expect(viewer.consoleErrors().join(), viewer.name).toBe('');
  unharmed(pages, plain, skip);
  // A seed has two children in each stripe, and which of the five viewers they are is chance. So the bar is for what it does not send.
  expect(figure.seed + figure.peer).toBeGreaterThan(0.75);
  expect(figure.peer / (1 - figure.seed)).toBeGreaterThan(0.6);
  expect(shown.shared, `of ${shown.cells} segments that the page shows`).toBeGreaterThan(5);
});

test('a headless viewer takes parts of pages', async () => {
  const viewers: Viewer[] = [];
  for (const name of ['first', 'second']) viewers.push(await open(browser, name, `&viewer=${name}`));
  await until('bytes of the seed', async () => {
    const all = await Promise.all(viewers.map((viewer) => viewer.stats()));
    return all.every((stats) => (stats?.titles[0]?.totals.bytes.seed ?? 0) > 0);
  });
  const leave = partsFor(watchMs / 2 + 30_000);
  const pages = await watch(viewers, watchMs / 2); // it is still linked then
  const late = await leave();
  figures('lowlatency-headless', { pages, late });

  expect(amount(pages, late.session, 'uploaded'), 'to the headless viewer').toBeGreaterThan(500_000);
  expect(late.banned).toBe(0);
  for (const page of pages) expect(page.wrong, page.name).toEqual([]);
});

test('a viewer that pushes wrong pieces is banned by each page at the first, and none is played', async ({ skip }) => {
  // It has a place at the seed before the pages come, and has room for them. It chooses its rendition: the highest.
  const wicked = polluter(manifest(), watchMs / 1000 + 25);
  await pause(10_000);
  const viewers: Viewer[] = [];
  for (const name of ['first', 'second', 'third']) viewers.push(await open(browser, name, '', 2));
  const alone = await open(browser, 'alone', '&leeway=off', 2);
  const pages = await watch([...viewers, alone]);
  const plain = pages.pop()!; // what stalls on a busy machine shows in it, too
  const peer = await wicked;
  const blames = pages.flatMap(({ unlinked }) => unlinked.filter(({ banned }) => banned));
  figures('lowlatency-polluted', { pages, plain, peer });

  intact(pages);
  expect(blames.length, 'pages that it has pushed to').toBeGreaterThan(0);
  for (const blame of blames) expect(blame).toEqual({ peer, reason: 'bad-piece', banned: true });
  for (const page of pages) {
    // A page is rid of it at the first wrong piece; others may have been on their way.
    expect(page.rejected, page.name).toBeLessThan(16 * 16_384);
  }
  for (const viewer of viewers) expect(viewer.consoleErrors().join(), viewer.name).toBe('');
  unharmed(pages, plain, skip);
});

/** A third page gets parts of two of Chromium with hls.js: the seed feeds the two that come first. */
async function third(name: string, come: () => Promise<Viewer>): Promise<void> {
  const viewers = [await open(browser, 'Chromium'), await open(browser, 'second Chromium', '&viewer=2')];
  viewers.push(await come());
  await until('bytes from viewers', () => fed(viewers[2]!));
  const pages = await watch(viewers, watchMs / 2);
  figures(`lowlatency-${name}`, { pages });
  for (const page of pages) expect(page.wrong, page.name).toEqual([]);
  const { bytes, parts, rejected, stalls } = pages[2]!;
  expect(parts).toBeGreaterThan(watchMs / 2000);
  expect(bytes.peer, 'from Chromium').toBeGreaterThan(500_000);
  expect({ rejected, stalls }).toEqual({ rejected: 0, stalls: 0 });
}

test('a Firefox gets parts of Chromium', async () => {
  const firefox = await Firefox.start();
  try {
    await third('firefox', () => open(firefox, 'Firefox', '&viewer=3'));
  } finally {
    await Promise.all(opened.splice(0).map((viewer) => viewer.close()));
    await firefox.stop();
  }
});

test('a page with Video.js gets parts of pages with hls.js', () =>
  third('videojs', async () => {
    const viewer = await open(browser, 'Video.js', '&viewer=3&player=videojs');
    await recordVideojs(viewer);
    return viewer;
  }));

test('pages with Shaka and dash.js push chunks of low-latency DASH to each other, beside viewers of HLS', async ({
  skip,
}) => {
  // As many as the pages and first, they have chosen their manifest: the seed follows that of the pages beside it.
  const others = [1, 2, 3].map(() => partsFor(watchMs + 60_000));
  await pause(5_000);
  const enter = (name: string, player: string, query = '') =>
    open(browser, name, `&player=${player}&viewer=${name}${query}`, 1, recordAppends);
  const viewers = [await enter('first', 'shaka'), await enter('second', 'shaka'), await enter('third', 'dashjs')];
  const alone = await enter('alone', 'shaka', '&leeway=off');
  await until('bytes from viewers', async () => (await Promise.all(viewers.map(fed))).some(Boolean));
  const pages = await watch([...viewers, alone]);
  const plain = pages.pop()!;
  const hls = (await Promise.all(others.map((leave) => leave()))).map((one) => one.stats.bytes);
  const known = new Set(Object.values(await demo.digests()));
  const appended = await Promise.all(viewers.map(given));
  const chunks = appended.map((all) => all.length);
  const wrong = appended.map((all) => all.filter(({ digest }) => !known.has(digest)).length);
  const figure = { seed: shareOf(pages, 'seed'), peer: shareOf(pages, 'peer'), chunks, wrong };
  figures('lowlatency-dash', { ...figure, hls, pages, plain });

  expect(wrong, "chunks that are not the origin's").toEqual([0, 0, 0]);
  for (const n of chunks) expect(n).toBeGreaterThan(watchMs / 1000);
  for (const { origin = 0, seed = 0, peer = 0 } of hls) {
    expect((seed + peer) / (origin + seed + peer), 'parts of those of HLS').toBeGreaterThan(0.6);
  }
  for (const page of pages) {
    expect(page.rejected, page.name).toBe(0);
    expect(page.unlinked.filter(({ banned }) => banned)).toEqual([]);
  }
  for (const viewer of [...viewers, alone]) expect(viewer.consoleErrors().join(), viewer.name).toBe('');
  skip(plain.lag > slowLag, `the machine was too slow: ${plain.lag} ms behind the clock without the script`);
  for (const page of pages) {
    expect(page.stalls, page.name).toBeLessThanOrEqual(plain.stalls);
    // These players hold their distance to the clock; when they come they are nearer.
    expect(page.lag, page.name).toBeLessThan(plain.lag + lagBound);
  }
  // Each page has its first segments from the origin, until it is in the trees: a quarter of those of this test.
  expect(figure.seed + figure.peer).toBeGreaterThan(0.6);
});
