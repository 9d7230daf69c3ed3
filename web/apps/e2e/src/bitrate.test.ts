import { afterAll, beforeAll, expect, test } from 'vitest';
import { figures, median, round } from './figures.ts';
import { lines } from './origin.ts';
import { shape, unshape } from './shape.ts';
import { Stack } from './stack.ts';
import { pause, until, Viewer } from './viewer.ts';
import type { PageOptions, Player, Told } from './watched.ts';
import { figuresOf, stackFor, startBrowser } from './which.ts';

let browser: Awaited<ReturnType<typeof startBrowser>>;
let stack: Stack;

/** `make e2e-players`: every player that chooses by what the library tells it. */
const everyPlayer = process.env.LEEWAY_E2E_PLAYERS === 'all';
/** The viewers "with" have no Leeway either: by how much equal pages differ. */
const equal = process.env.LEEWAY_E2E_EQUAL === 'yes';

beforeAll(async () => {
  stack = await Stack.start(stackFor);
  if (everyPlayer) stack.serveCMAF();
  browser = await startBrowser();
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

/** What the origin was asked for on a line since then, in ms since then, as far as the scripts of the page go not. */
function fetched(begun: number, line: (typeof lines)[number]): string[] {
  const all = stack.origin.ledger.filter(({ asker, at }) => asker === line && at >= begun);
  return all.slice(0, 24).map(({ path, bytes, at }) => `${at - begun} ms ${path} ${bytes} B`);
}

/** What hls.js may take to parse the first segment, and to start the worker that does it, ms: 90 to 200 on two processors that are free. */
const parseMs = 250;
/** The least part of its rate at which a line brings the first segment: 0.96 of it are payload. */
const leastPart = 0.9;
/** How often a viewer may begin anew whose machine was busy meanwhile. */
const mostHalts = 3;
/** Those that have, and why. */
const halts: string[] = [];

/**
 * Opens a viewer, and opens it anew if the machine was busy while its first segment came or was parsed. hls.js takes that time for
 * the line's: 300 ms cost the best rendition on 2.2 Mbit/s, and for good, with Leeway and without (one of eight viewers alone on the
 * machine). All is by the browser's own account of when bytes were there, so that nothing that the library tells the player counts.
 */
async function begin(page: string, name: string, rate: number): Promise<Viewer> {
  for (let n = 0; ; n++) {
    const viewer = await Viewer.open(browser, page, { name });
    await viewer.until('first picture', ({ startup }) => startup >= 0);
    const { asked } = await viewer.player();
    if (!asked) return viewer; // another player
    const next = async () => (await viewer.player()).asked!.find(({ sn }) => sn === 1)?.at ?? 0;
    await until('what comes next', next);
    const [end, whole] = await viewer.page.evaluate((bps) => {
      const all = performance.getEntriesByType('resource') as PerformanceResourceTiming[];
      const { responseStart, responseEnd, encodedBodySize } = all.findLast((one) => /seg-00000/.test(one.name))!;
      return [responseEnd, (encodedBodySize * 8000) / (responseEnd - responseStart) / bps];
    }, rate);
    const part = Math.min(whole!, untilGivenUp(asked[0]!) / rate);
    const late = (await next()) - end!;
    if ((late <= parseMs && part >= leastPart) || n === mostHalts) return viewer;
    halts.push(`${name}: parsed in ${Math.round(late)} ms, ${round(part)} of the line`);
    await viewer.close();
  }
}

/**
 * At what rate the first segment came until the player gave it up, in bits per second; infinite: it did not. Bytes behind a lost packet are
 * there and not seen. Where that is so as Video.js looks, after a second, it takes the line for slower than it is (docs/conformance.md).
 */
function untilGivenUp({ at, took = [0], gaveUp }: NonNullable<Player['asked']>[number]): number {
  return gaveUp ? (gaveUp.loaded * 8000) / (gaveUp.at - at - took[0]!) : Number.POSITIVE_INFINITY;
}

interface Pair {
  line: number;
  /** Where the viewer with Leeway has the worse picture, or stalls: what the player asked for at first, and where it came from. */
  asked?: { with: Player['asked']; without: Player['asked'] };
  came?: Told['segments'];
  fetched?: { with: string[]; without: string[] };
  /** Where the choices differ: each rendition that came or was on screen, and when. */
  played?: { with: string[]; without: string[] };
  /** Seconds of film. A player that stands still chooses nothing. */
  seconds: { with: number; without: number };
  /** hls.js's estimate ÷ the line's rate, every five seconds. */
  estimate: { with: number[]; without: number[] };
  bitrate: { with: number; without: number };
  switches: { with: number; without: number };
  /** Bytes of the viewer with Leeway that came from others, as a share. */
  others: number;
  stalls: { with: number; without: number };
  /** Where one stalled: when, and for how long. */
  stalled?: { with: string[]; without: string[] };
}

/** The share of others in a viewer's bytes. By its totals: what came before the engine was there is in no event. */
async function fromOthers(viewer: Viewer): Promise<number> {
  if (equal) return 0;
  const { origin, ...rest }: Record<string, number> = (await viewer.stats()).titles[0].totals.bytes;
  const sum = Object.values(rest).reduce((total, bytes) => total + bytes, 0);
  return round(sum / (sum + origin!));
}

/** Every five seconds. */
const looks = everyPlayer ? 10 : 8;
const kinds = ['with', 'without'] as const;

/**
 * On each line, a viewer with Leeway and one without, each on a copy of the line for itself. They start one after another: a
 * page that starts is busy.
 */
async function pairs(rates: number[], options: PageOptions): Promise<Pair[]> {
  shape(lines.map((line, i) => ({ port: stack.origin.port(line), rate: rates[i >> 1]! })));
  const viewers: Viewer[] = [];
  const begun = Date.now();
  for (const rate of rates) {
    // The pages start one after the other, and each kind is first in turn. hls.js counts the parsing of the first segment as time of the
    // line. Two pages that start at the same moment take the processor from each other, by chance (160 to 370 ms of 2 to 3 s).
    const pair = new Map<string, Viewer>();
    for (const kind of viewers.length % 4 ? [...kinds].reverse() : kinds) {
      const line = lines[viewers.length + kinds.indexOf(kind)]!;
      const page = kind === 'with' && !equal ? stack.page(options, line) : stack.plain(options, line);
      pair.set(kind, await begin(page, `${kind} Leeway on ${rate}`, rate));
    }
    viewers.push(...kinds.map((kind) => pair.get(kind)!));
  }
  const estimates = viewers.map(() => [] as number[]);
  for (let look = 0; look < looks; look++) {
    await pause(5000);
    for (const [i, viewer] of viewers.entries()) {
      estimates[i]!.push(round((await viewer.player()).estimate / rates[i >> 1]!));
    }
  }
  const players = await Promise.all(viewers.map((viewer) => viewer.player()));
  const choices = players.map(choice);
  const stalls = await Promise.all(viewers.map(async (viewer) => (await viewer.seen()).stalls));
  const told = await Promise.all(rates.map((_, i) => viewers[2 * i]!.told()));
  const others = await Promise.all(rates.map((_, i) => fromOthers(viewers[2 * i]!)));
  unshape();
  await Promise.all(viewers.map((viewer) => viewer.close()));
  return rates.map((line, i) => {
    const both = <T>(values: T[]) => ({ with: values[2 * i]!, without: values[2 * i + 1]! });
    const bitrate = both(choices.map(({ bits, seconds }) => Math.round(bits / seconds)));
    const counts = both(stalls.map((all) => all.length));
    const worse = bitrate.with < bitrate.without || counts.with > counts.without;
    const switches = both(choices.map((one) => one.switches));
    const differ = worse || switches.with !== switches.without;
    return {
      line,
      seconds: both(choices.map(({ seconds }) => Math.round(seconds))),
      estimate: both(estimates),
      bitrate,
      ...(differ && {
        played: both(players.map(({ played }) => played.map(({ level, at }) => `${level} at ${Math.round(at)} ms`))),
      }),
      ...(worse && {
        asked: both(players.map(({ asked = [] }) => asked.slice(0, 8))),
        came: told[i]!.segments.slice(0, 8),
        fetched: both(viewers.map((_, n) => fetched(begun, lines[n]!))),
      }),
      switches,
      others: others[i]!,
      stalls: counts,
      ...(counts.with + counts.without > 0 && {
        stalled: both(stalls.map((all) => all.map(({ at, ms }) => `at ${Math.round(at)} ms for ${Math.round(ms)} ms`))),
      }),
    };
  });
}

interface Choice {
  name: string;
  options: PageOptions;
  /** Lines two at a time, bits per second. */
  rates: [number, number][];
}

const choices: Choice[] = [
  {
    name: 'bitrate',
    options: {},
    // hls.js goes up to what fits into 0.7 of its estimate and stays at what fits into 0.95. The renditions have averages of
    // 0.42, 0.81 and 1.48 Mbit/s and peaks of 0.49, 1.01 and 1.90. After the first segment a second rule holds: the next one has to
    // come, first byte and all, while the four seconds in hand play. So 2.01 Mbit/s are needed for the best rendition, and 2.03 where
    // the first byte took 50 ms. On 2.2 the estimate is 2.05 to 2.08, and 30 to 60 ms of parsing cost the choice, for good, with
    // Leeway or without; on 2.3 an estimate that is lower by 7 % does, and on 1.25 one lower by 4 % costs the second rendition. On 1.7
    // and 3.2 the choice has room. (Not on 1.9: the first choice takes all of the estimate, and a bandwidth test that came out high by
    // 3 % begins with the best one.)
    rates: [[1_250_000, 2_300_000], ...(everyPlayer ? [[1_700_000, 3_200_000] as [number, number]] : [])],
  },
  // dash.js goes up to what fits into 0.9 of its estimate, Shaka to what fits into 0.85, Video.js to what fits into 1/1.2.
  ...(everyPlayer
    ? [
        {
          name: 'bitrate-dashjs',
          options: { player: 'dashjs', manifest: '/cmaf/master.mpd', order: 'after' },
          rates: [[1_500_000, 3_200_000]],
        } as Choice,
        { name: 'bitrate-shaka', options: { player: 'shaka' }, rates: [[1_500_000, 3_200_000]] } as Choice,
        // On the first of these Video.js gives up its first segment, which is of the best rendition, and on the second it does not. On
        // 3.2 Mbit/s that is decided by a single lost packet (docs/conformance.md).
        { name: 'bitrate-videojs', options: { player: 'videojs' }, rates: [[1_700_000, 4_000_000]] } as Choice,
      ]
    : []),
];

// The second try is for the machine: hls.js counts the start of its worker and the first segment's parsing as time of the
// line. Beside two busy loops that is 50 to 300 ms, now and then 0.8 s; on 2.2 Mbit/s 260 ms cost the first choice, with
// Leeway and without. A wrong law fails both tries.
test.each(choices)('choice on shaped lines with peers: honest estimate, no worse picture: $name', {
  retry: 1,
  timeout: 480_000,
}, async ({ name, options, rates }) => {
  // Others watch already, on lines of their own, and hold the two renditions that the lines are about.
  const peers = await Promise.all(
    [1, 2].map((level) =>
      Viewer.open(browser, stack.page({ ...options, level }), { name: `peer with rendition ${level}` }),
    ),
  );
  await pause(6000);
  const all: Pair[] = [];
  for (const two of rates) all.push(...(await pairs(two, { ...options, level: -1 })));
  const peerStalls = await Promise.all(peers.map(async (peer) => (await peer.seen()).stalls.length));
  await Promise.all(peers.map((peer) => peer.close()));
  const sum = (of: (pair: Pair) => number) => all.reduce((total, pair) => total + of(pair), 0);
  const ratio = round(sum((p) => p.bitrate.with) / sum((p) => p.bitrate.without));
  const switches = { with: sum((p) => p.switches.with), without: sum((p) => p.switches.without) };
  figures(figuresOf(name), { ratio, switches, halts: halts.splice(0), pairs: all });
  for (const { line, seconds, estimate, bitrate, others, stalls } of all) {
    for (const kind of kinds) expect(seconds[kind], `film of the viewer ${kind} on ${line}`).toBeGreaterThan(3 * looks);
    // The first two looks still hold the player's own guess.
    const [ours, without] = [estimate.with.slice(2), estimate.without.slice(2)];
    const off = (values: number[]) => values.filter((value) => value < 0.7 || value > 1.3);
    // Where the viewer without is off too, the machine halted the line for seconds, and it was not what it is said to be.
    if (!off(without).length) expect(off(ours), `estimates on ${line}`).toEqual([]);
    // Not below what the viewer without makes of the same line; above it by our margin (up to 0.06) and by the time that a
    // busy machine takes to parse, which hls.js takes for the line's (up to 0.1 seen).
    expect(median(ours) / median(without), `estimates on ${line}, with / without`).toBeGreaterThan(0.9);
    if (!equal) expect(others, `share from others on ${line}`).toBeGreaterThan(0.5);
    expect(stalls.with, `stalls on ${line}`).toBe(0);
    expect(bitrate.with / bitrate.without, `bitrate on ${line}, with / without`).toBeGreaterThan(0.9);
  }
  // packages/hlsjs/src/choice.test.ts holds to the same, on lines that waver and with peers on the same line. An estimate
  // that was wrong by a fifth gave 0.79 over all lines, and 0.52 and 0.62 on 1.25 and 2.2.
  expect(ratio).toBeGreaterThanOrEqual(0.98);
  expect(switches.with).toBeLessThanOrEqual(1.1 * switches.without);
  expect(peerStalls).toEqual([0, 0]);
});
