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
/** Folders of what is played, by their place on the origin. */
let folders: Record<string, string>;

beforeAll(async () => {
  folders = { '/media/film/': filmDir(), '/cmaf/': filmDir('--cmaf') };
  stack = await Stack.start();
  stack.serveCMAF();
  browser = await Chromium.start();
});
afterAll(async () => {
  await browser?.stop();
  await stack?.stop();
});

/** Segments of a rendition that may come from anywhere: the first picture waits for no peer. */
const first = 2;

/** Pages whose players are told to play the lowest rendition; those of one title share. */
const pages: Record<string, PageOptions> = {
  'hls.js': { player: 'hls', level: 0 },
  Shaka: { player: 'shaka', level: 0 },
  // dash.js has to be met before a player is made (decision 106).
  'dash.js': { player: 'dashjs', level: 0, manifest: '/cmaf/master.mpd', order: 'before' },
  'Video.js': { player: 'videojs', level: 0 },
};
type Name = keyof typeof pages;

const open = (role: string, player: Name, title: string) =>
  Viewer.open(browser, stack.page({ ...pages[player], buffer: 20, attributes: `data-title="${title}"` }), {
    name: `${role} with ${player}, ${title}`,
  });

/**
 * Bytes of a segment's file; 0: it is one of the first of its rendition, or initializes it. Names in MPEG-TS count from 0, those in CMAF
 * from 1.
 */
function sizeOf(path: string): number {
  const [, number, form] = /(\d+)\.(ts|m4s)$/.exec(path) ?? [];
  if (!form || Number(number) < (form === 'ts' ? first : first + 1)) return 0;
  const [place, folder] = Object.entries(folders).find(([start]) => path.startsWith(start))!;
  return statSync(join(folder, path.slice(place.length))).size;
}

/** What a viewer had from others, as the browser's own account of its fetches and the sizes of the film's files have it. */
async function measure(viewer: Viewer) {
  const [seen, told, player] = await Promise.all([viewer.seen(), viewer.told(), viewer.player()]);
  const pathOf = ({ url }: { url: string }) => new URL(url, stack.origin.url('/')).pathname;
  const paths = [...new Set([...told.segments, ...seen.fetched].map(pathOf))];
  const total = paths.reduce((n, path) => n + sizeOf(path), 0);
  const origin = seen.fetched.filter((one) => sizeOf(pathOf(one)) > 0).reduce((n, { bytes }) => n + bytes, 0);
  const sum = (source: 'origin' | 'seed' | 'peer') => told.segments.reduce((n, { bytes }) => n + bytes[source], 0);
  const { viewers } = (await viewer.stats()).titles[0];
  return {
    name: viewer.name,
    segments: paths.length,
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

// Two pairs at a time, each of a title of its own: the host's player first.
test.each<{ name: string; pairs: [Name, Name][] }>([
  {
    name: 'shaka',
    pairs: [
      ['Shaka', 'Shaka'],
      ['hls.js', 'Shaka'],
    ],
  },
  {
    name: 'dashjs-videojs',
    pairs: [
      ['dash.js', 'dash.js'],
      ['Video.js', 'Video.js'],
    ],
  },
])('two viewers share a film: $name', async ({ name, pairs }) => {
  const each = (role: string, of: (pair: [Name, Name]) => Name) =>
    Promise.all(pairs.map((pair, i) => open(role, of(pair), `${name}-${i + 1}`)));
  const hosts = await each('host', ([host]) => host);
  await Promise.all(hosts.map((v) => v.until('8 s of film', (s) => s.currentTime > 8)));
  const guests = await each('guest', ([, guest]) => guest);
  await Promise.all(guests.map((v) => v.until('24 s of film', (s) => s.currentTime > 24, 60_000)));
  const results = await Promise.all([...hosts, ...guests].map(measure));
  figures(`share-${name}`, { viewers: results });
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
