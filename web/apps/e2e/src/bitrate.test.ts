import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures, median, round } from './figures.ts';
import { lines } from './origin.ts';
import { shape, unshape } from './shape.ts';
import { Stack } from './stack.ts';
import { pause, Viewer } from './viewer.ts';
import type { Player } from './watched.ts';

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

/** Bits of what was on screen, its seconds, and how often the rendition changed. */
function choice(player: Player): { bits: number; seconds: number; switches: number } {
  let [bits, seconds, switches] = [0, 0, 0];
  player.played.forEach((fragment, i) => {
    bits += fragment.bitrate * fragment.duration;
    seconds += fragment.duration;
    if (i > 0 && fragment.level !== player.played[i - 1]!.level) switches++;
  });
  return { bits, seconds, switches };
}

interface Pair {
  line: number;
  /** hls.js's estimate ÷ the line's rate, every five seconds. */
  estimate: { with: number[]; without: number[] };
  bitrate: { with: number; without: number };
  switches: { with: number; without: number };
  /** Bytes of the viewer with Leeway that came from others, as a share. */
  others: number;
  stalls: { with: number; without: number };
}

const looks = 10;
const kinds = ['with', 'without'] as const;

/**
 * On each line, a viewer with Leeway and one without, at the same time, each on a copy of the line for himself. The lines
 * start one after another: a page that starts is busy.
 */
async function pairs(rates: number[]): Promise<Pair[]> {
  shape(lines.map((line, i) => ({ port: stack.origin.port(line), rate: rates[i >> 1]! })));
  const viewers: Viewer[] = [];
  for (const rate of rates) {
    const both = kinds.map(async (kind, i) => {
      const line = lines[viewers.length + i]!;
      const page = kind === 'with' ? stack.page({ level: -1 }, line) : stack.plain({ level: -1 }, line);
      const viewer = await Viewer.open(browser, page, { name: `${kind} Leeway on ${rate}` });
      await viewer.until('first picture', ({ startup }) => startup >= 0);
      return viewer;
    });
    viewers.push(...(await Promise.all(both)));
  }
  const estimates = viewers.map(() => [] as number[]);
  for (let look = 0; look < looks; look++) {
    await pause(5000);
    for (const [i, viewer] of viewers.entries()) {
      estimates[i]!.push(round((await viewer.player()).estimate / rates[i >> 1]!));
    }
  }
  const choices = await Promise.all(viewers.map(async (viewer) => choice(await viewer.player())));
  const stalls = await Promise.all(viewers.map(async (viewer) => (await viewer.seen()).stalls.length));
  const told = await Promise.all(rates.map((_, i) => viewers[2 * i]!.told()));
  unshape();
  await Promise.all(viewers.map((viewer) => viewer.close()));
  return rates.map((line, i) => {
    const both = <T>(values: T[]) => ({ with: values[2 * i]!, without: values[2 * i + 1]! });
    const sum = { origin: 0, seed: 0, peer: 0 };
    for (const { bytes } of told[i]!.segments) for (const k of ['origin', 'seed', 'peer'] as const) sum[k] += bytes[k];
    return {
      line,
      estimate: both(estimates),
      bitrate: both(choices.map(({ bits, seconds }) => Math.round(bits / seconds))),
      switches: both(choices.map(({ switches }) => switches)),
      others: round(1 - sum.origin / (sum.origin + sum.seed + sum.peer)),
      stalls: both(stalls),
    };
  });
}

// The second try is for the machine: hls.js counts the start of its worker and the first segment's parsing as time of the
// line. Beside two busy loops that is 50 to 300 ms, now and then 0.8 s; on 2.2 Mbit/s 260 ms cost the first choice, with
// Leeway and without. A wrong law fails both tries.
test('bitrate choice on shaped lines with peers: honest estimate, no worse picture', { retry: 1 }, async () => {
  // Others watch already, on lines of their own, and hold the two renditions that the lines are about.
  const peers = await Promise.all(
    [1, 2].map((level) => Viewer.open(browser, stack.page({ level }), { name: `peer with rendition ${level}` })),
  );
  await pause(6000);
  // hls.js goes up to what fits into 0.7 of its estimate and stays at what fits into 0.95. The renditions have averages of
  // 0.42, 0.81 and 1.48 Mbit/s and peaks of 0.49, 1.01 and 1.88: on 2.2 Mbit/s an estimate that is lower by 7 % costs the
  // best one, on 1.25 one lower by 4 % the second; on 1.7 and 3.2 the choice has room. (Not on 1.9: the first choice takes all
  // of the estimate, and a bandwidth test that came out high by 3 % begins with the best one.)
  const all = [...(await pairs([1_250_000, 2_200_000])), ...(await pairs([1_700_000, 3_200_000]))];
  const peerStalls = await Promise.all(peers.map(async (peer) => (await peer.seen()).stalls.length));
  await Promise.all(peers.map((peer) => peer.close()));
  const sum = (of: (pair: Pair) => number) => all.reduce((total, pair) => total + of(pair), 0);
  const ratio = round(sum((p) => p.bitrate.with) / sum((p) => p.bitrate.without));
  const switches = { with: sum((p) => p.switches.with), without: sum((p) => p.switches.without) };
  figures('bitrate', { ratio, switches, pairs: all });
  for (const { line, estimate, bitrate, others, stalls } of all) {
    // The first two looks still hold the player's own guess.
    const [ours, without] = [estimate.with.slice(2), estimate.without.slice(2)];
    const off = (values: number[]) => values.filter((value) => value < 0.7 || value > 1.3);
    // Where the viewer without is off too, the machine halted the line for seconds, and it was not what it is said to be.
    if (!off(without).length) expect(off(ours), `estimates on ${line}`).toEqual([]);
    // Not below what the viewer without makes of the same line; above it by our margin (up to 0.06) and by the time that a
    // busy machine takes to parse, which hls.js takes for the line's (up to 0.1 seen).
    expect(median(ours) / median(without), `estimates on ${line}, with / without`).toBeGreaterThan(0.9);
    expect(others, `share from others on ${line}`).toBeGreaterThan(0.5);
    expect(stalls.with, `stalls on ${line}`).toBe(0);
    expect(bitrate.with / bitrate.without, `bitrate on ${line}, with / without`).toBeGreaterThan(0.9);
  }
  // packages/hlsjs/src/choice.test.ts holds to the same, on lines that waver and with peers on the same line. An estimate
  // that was wrong by a fifth gave 0.79 over all lines, and 0.52 and 0.62 on 1.25 and 2.2.
  expect(ratio).toBeGreaterThanOrEqual(0.98);
  expect(switches.with).toBeLessThanOrEqual(1.1 * switches.without);
  expect(peerStalls).toEqual([0, 0]);
});
