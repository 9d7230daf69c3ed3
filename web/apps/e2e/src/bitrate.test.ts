import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures, round } from './figures.ts';
import type { Player } from './page.ts';
import { shape, unshape } from './shape.ts';
import { Stack } from './stack.ts';
import { pause, Viewer } from './viewer.ts';

let browser: Chromium;
let stack: Stack;

beforeAll(async () => {
  stack = await Stack.start();
  browser = await Chromium.start();
});
afterAll(async () => {
  unshape();
  await browser?.stop();
  await stack?.stop();
});

/** Bits per second of what was on screen, by time, and how often it changed. */
function choice(player: Player): { bitrate: number; switches: number } {
  let [bits, seconds, switches] = [0, 0, 0];
  player.played.forEach((fragment, i) => {
    bits += fragment.bitrate * fragment.duration;
    seconds += fragment.duration;
    if (i > 0 && fragment.level !== player.played[i - 1]!.level) switches++;
  });
  return { bitrate: bits / seconds, switches };
}

// One pair of runs is compared, and the player's first choice hangs on one sample: a second pair may settle it.
test('bitrate choice on a shaped line with peers: honest estimate, no worse picture', { retry: 1 }, async () => {
  // hls.js takes what fits into 0.7 of its estimate: the best rendition (1.9 Mbit/s) fits this line with a margin, so that
  // neither choice hangs on the noise of one sample.
  const rate = 3_200_000;
  // Others watch already, on a line of their own, and hold the best rendition.
  const peers = [await Viewer.open(browser, stack.page({ level: 2 }), { name: 'peer' })];
  await pause(6000);
  // The same line twice: one for the viewer with Leeway, one for the viewer without, at the same time.
  shape([
    { port: stack.origin.port('shaped'), rate },
    { port: stack.origin.port('control'), rate },
  ]);
  const [plain, leeway] = await Promise.all([
    Viewer.open(browser, stack.plain({ level: -1 }, 'control'), { name: 'plain' }),
    Viewer.open(browser, stack.page({ level: -1 }, 'shaped'), { name: 'with Leeway' }),
  ]);
  const estimates: number[] = [];
  for (let i = 0; i < 12; i++) {
    await pause(5000);
    estimates.push((await leeway.player()).estimate);
  }
  const [without, withLeeway] = [choice(await plain.player()), choice(await leeway.player())];
  const told = await leeway.told();
  const bytes = { origin: 0, seed: 0, peer: 0 };
  for (const s of told.segments) for (const k of ['origin', 'seed', 'peer'] as const) bytes[k] += s.bytes[k];
  const stalls = [...(await leeway.seen()).stalls, ...(await peers[0]!.seen()).stalls];
  figures('bitrate', {
    line: rate,
    estimate: estimates.map((e) => round(e / rate)),
    plainEstimate: round((await plain.player()).estimate / rate),
    without,
    withLeeway,
    ratio: round(withLeeway.bitrate / without.bitrate),
    bytes,
    stalls: stalls.length,
    plainStalls: (await plain.seen()).stalls.length,
  });
  unshape();
  await Promise.all([...peers, plain, leeway].map((v) => v.close()));
  // The first two samples still hold the player's own start-up guess.
  for (const estimate of estimates.slice(2)) {
    expect(estimate).toBeGreaterThan(0.7 * rate);
    expect(estimate).toBeLessThan(1.3 * rate);
  }
  expect(withLeeway.bitrate).toBeGreaterThanOrEqual(0.98 * without.bitrate);
  expect(withLeeway.switches).toBeLessThanOrEqual(1.1 * without.switches);
  expect(bytes.peer + bytes.seed, 'peers took part').toBeGreaterThan(0);
  expect(stalls).toEqual([]);
});
