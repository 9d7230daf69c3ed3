/** Pages at the edge of a live stream share its segments, and stay as near to the clock as a page without the script. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures } from './figures.ts';
import { Demo } from './service.ts';
import { pause, until, Viewer } from './viewer.ts';

interface Felt {
  latency_ms: number | null;
  stalls: number;
  played_ms: number;
  segments: { sn: number; source: string }[];
}

let browser: Chromium;
let demo: Demo;

beforeAll(async () => {
  // The film that is there already: nothing is encoded.
  demo = await Demo.start(['--replay', '--segment', '4s']);
  browser = await Chromium.start();
});
afterAll(async () => {
  await browser?.stop();
  await demo?.stop();
});

const felt = (viewer: Viewer): Promise<Felt> =>
  viewer.page.evaluate(() => (window as unknown as { __demo: { stats(): Felt } }).__demo.stats());

test('two pages of a live stream share it, and are no further behind than one without the script', async () => {
  const open = async (name: string, query: string) => {
    const viewer = await Viewer.open(browser, `${demo.url}/?level=0&${query}`, { name });
    await viewer.until('a first picture', (seen) => seen.startup >= 0);
    return viewer;
  };
  // How far a player is behind the clock depends on when it joins: up to a segment. All join behind a publication.
  const published = async () => {
    const list = async () => (await fetch(`${demo.url}/media/live/240p/index.m3u8`)).text();
    const before = await list();
    await until('a publication', async () => (await list()) !== before);
  };
  await published();
  const viewers = [await open('first', 'viewer=1')];
  await published();
  viewers.push(...(await Promise.all([open('second', 'viewer=2'), open('alone', 'viewer=3&leeway=off')])));
  await pause(28_000);
  const seen = await Promise.all(viewers.map(felt));
  const [first, second, alone] = seen as [Felt, Felt, Felt];
  const peers = [first, second].map((one) => one.segments.filter(({ source }) => source === 'peer').length);
  figures('live', {
    latency: seen.map((one) => Math.round(one.latency_ms ?? 0)),
    stalls: seen.map((one) => one.stalls),
    peers,
    segments: seen.map((one) => one.segments.length),
  });
  for (const one of seen) expect(one.played_ms).toBeGreaterThan(15_000);
  expect(peers[0]! + peers[1]!).toBeGreaterThan(2);
  for (const one of [first, second]) {
    expect(one.latency_ms!).toBeLessThan(alone.latency_ms! + 1000);
    expect(one.stalls).toBeLessThanOrEqual(alone.stalls);
  }
  for (const viewer of viewers) expect(viewer.consoleErrors()).toEqual([]);
});
