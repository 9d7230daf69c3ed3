import { statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures, round } from './figures.ts';
import { filmDir, Stack } from './stack.ts';
import { Viewer } from './viewer.ts';
import type { PageOptions } from './watched.ts';

let browser: Chromium;
let stack: Stack;
let film: string;
/** The lowest of the film, which both players are told to play. */
const rendition = '240p';

beforeAll(async () => {
  film = filmDir();
  stack = await Stack.start();
  browser = await Chromium.start();
});
afterAll(async () => {
  await browser?.stop();
  await stack?.stop();
});

/** Segments that may come from anywhere: the first picture waits for no peer. */
const first = 2;

const open = (name: string, player: PageOptions['player'], title: string) =>
  Viewer.open(browser, stack.page({ player, level: 0, buffer: 20, attributes: `data-title="${title}"` }), { name });

const numberOf = (url: string) => Number(/240p\/seg-(\d+)\.ts/.exec(url)?.[1]);

/** What a viewer had from others, as the browser's own account of its fetches and the sizes of the film's files have it. */
async function measure(viewer: Viewer) {
  const [seen, told, player] = await Promise.all([viewer.seen(), viewer.told(), viewer.player()]);
  const last = Math.max(...[...told.segments, ...seen.fetched].map(({ url }) => numberOf(url)));
  let total = 0;
  for (let i = first; i <= last; i++)
    total += statSync(join(film, rendition, `seg-${String(i).padStart(5, '0')}.ts`)).size;
  const origin = seen.fetched.filter(({ url }) => numberOf(url) >= first).reduce((n, { bytes }) => n + bytes, 0);
  const sum = (source: 'origin' | 'seed' | 'peer') => told.segments.reduce((n, { bytes }) => n + bytes[source], 0);
  const { viewers } = (await viewer.stats()).titles[0];
  return {
    name: viewer.name,
    segments: last + 1,
    others: round(1 - origin / total),
    said: { origin: sum('origin'), seed: sum('seed'), peer: sum('peer') },
    viewers,
    estimate: Math.round(player.estimate),
    startup: Math.round(seen.startup),
    stalls: seen.stalls,
    fatal: player.errors.filter(({ fatal }) => fatal),
    codes: told.notices.map(({ code }) => code),
    contradictions: told.contradictions,
    errors: [...viewer.consoleErrors(), ...seen.errors],
  };
}

test('pages with Shaka share a film with each other, and with pages with hls.js', async () => {
  const hosts = await Promise.all([open('host, shaka', 'shaka', 'pair-1'), open('host, hls.js', 'hls', 'pair-2')]);
  await Promise.all(hosts.map((v) => v.until('8 s of film', (s) => s.currentTime > 8)));
  const guests = await Promise.all([
    open('guest, shaka of shaka', 'shaka', 'pair-1'),
    open('guest, shaka of hls.js', 'shaka', 'pair-2'),
  ]);
  await Promise.all(guests.map((v) => v.until('24 s of film', (s) => s.currentTime > 24, 60_000)));
  const results = await Promise.all([...hosts, ...guests].map(measure));
  figures('shaka', { viewers: results });
  await Promise.all([...hosts, ...guests].map((v) => v.close()));
  for (const result of results) {
    expect(result, result.name).toMatchObject({ stalls: [], fatal: [], codes: [], contradictions: 0, errors: [] });
  }
  for (const guest of results.slice(hosts.length)) {
    expect(guest.viewers, guest.name).toBe(2);
    expect(guest.others, guest.name).toBeGreaterThan(0.6);
    expect(guest.said.peer, guest.name).toBeGreaterThan(guest.said.seed);
  }
});
