import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures, median, round } from './figures.ts';
import { lines } from './origin.ts';
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

/** On each line, a viewer with Leeway and one without, at the same time, each on a copy of the line for himself. */
async function pairs(rates: number[]): Promise<Pair[]> {
  shape(lines.map((line, i) => ({ port: stack.origin.port(line), rate: rates[i >> 1]! })));
  const viewers = await Promise.all(
    lines.map((line, i) => {
      const page = i % 2 ? stack.plain({ level: -1 }, line) : stack.page({ level: -1 }, line);
      return Viewer.open(browser, page, { name: `${kinds[i % 2]} Leeway on ${rates[i >> 1]}` });
    }),
  );
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

// Where peers send everything after the first segment, the estimate rests on that one sample for a minute, and a machine
// that was halted while it came has it low. Beside other tests 4 of 6 tries had 0.79 of a line and the lower rendition.
// A wrong law fails every try.
test('bitrate choice on shaped lines with peers: honest estimate, no worse picture', { retry: 2 }, async () => {
  // Others watch already, on lines of their own, and hold the two renditions that the lines are about.
  const peers = await Promise.all(
    [1, 2].map((level) => Viewer.open(browser, stack.page({ level }), { name: `peer with rendition ${level}` })),
  );
  await pause(6000);
  // hls.js goes up to what fits into 0.7 of its estimate and stays at what fits into 0.95. The renditions have averages of
  // 0.42, 0.81 and 1.48 Mbit/s and peaks of 0.49, 1.01 and 1.88: on 2.2 Mbit/s an estimate that is lower by 7 % costs the
  // best one, on 1.25 one lower by 4 % the second; on 1.9 and 3.2 the choice has room.
  const all = [...(await pairs([1_250_000, 2_200_000])), ...(await pairs([1_900_000, 3_200_000]))];
  const peerStalls = await Promise.all(peers.map(async (peer) => (await peer.seen()).stalls.length));
  await Promise.all(peers.map((peer) => peer.close()));
  const sum = (of: (pair: Pair) => number) => all.reduce((total, pair) => total + of(pair), 0);
  const ratio = round(sum((p) => p.bitrate.with) / sum((p) => p.bitrate.without));
  const switches = { with: sum((p) => p.switches.with), without: sum((p) => p.switches.without) };
  figures('bitrate', { ratio, switches, pairs: all });
  for (const { line, estimate, bitrate, others, stalls } of all) {
    // The first two looks still hold the player's own guess.
    const [ours, without] = [estimate.with.slice(2), estimate.without.slice(2)];
    for (const value of ours) {
      expect(value, `estimate on ${line}`).toBeGreaterThan(0.7);
      expect(value, `estimate on ${line}`).toBeLessThan(1.3);
    }
    // Not below what the viewer without makes of the same line; above it by our margin (up to 0.06) and by the time that a
    // busy machine takes to parse, which hls.js takes for the line's (up to 0.1 seen).
    expect(median(ours) / median(without), `estimates on ${line}, with / without`).toBeGreaterThan(0.9);
    expect(others, `share from others on ${line}`).toBeGreaterThan(0.5);
    expect(stalls.with, `stalls on ${line}`).toBe(0);
    expect(bitrate.with / bitrate.without, `bitrate on ${line}, with / without`).toBeGreaterThan(0.8);
  }
  // The goal is 0.98 and 1.1 times the switches; packages/hlsjs/src/choice.test.ts holds to it, on lines that waver and with
  // peers on the same line. These lines do not waver: on 1.9 and above none of 39 viewers, with and without, changed the
  // first choice, and on 1.25 the one without gave up the second rendition in three of four runs. What is allowed for is a
  // machine that halts a player so long that it goes down and up again: five of fourteen segments of one viewer, two
  // switches. An estimate that was wrong by a fifth gave 0.79 over all lines, and 0.52 and 0.62 on 1.25 and 2.2.
  expect(ratio).toBeGreaterThanOrEqual(0.98 - 0.05);
  expect(switches.with).toBeLessThanOrEqual(1.1 * switches.without + 2);
  expect(peerStalls).toEqual([0, 0]);
});
