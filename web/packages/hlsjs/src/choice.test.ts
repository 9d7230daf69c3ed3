/**
 * What hls.js chooses with and without peers, in virtual time: its own bitrate choice, our loader and engine, a line that
 * wavers. The same seed gives the same line to both.
 */
import { afterEach, expect, test, vi } from 'vitest';
import { Seed, viewerEngine } from '../../core/src/simulation/actors.ts';
import { Signer } from '../../core/src/simulation/film.ts';
import { World } from '../../core/src/simulation/world.ts';
import { attachTo } from './simulation/attach.ts';
import { HomeNetwork, RenditionFilm, random } from './simulation/line.ts';
import { originLoader } from './simulation/origin.ts';
import { Player, stubGlobals } from './simulation/player.ts';

afterEach(() => vi.unstubAllGlobals());
// Virtual time costs real time on a busy machine.
vi.setConfig({ testTimeout: 240_000 });

const segments = 22;
const signer = new Signer();
const film = new RenditionFilm(segments + 5, [
  { peak: 486_000, average: 423_000 },
  { peak: 1_012_000, average: 808_000 },
  { peak: 1_877_000, average: 1_476_000 },
]);
const [home, helper] = ['1'.repeat(32), '2'.repeat(32)] as const;

interface Case {
  /** Bits per second. */
  rate: number;
  seed: number;
  /** From a time on, ms. */
  later?: { rate: number; from: number };
  /** Whether the peer sends by the line that the origin sends by. */
  shared: boolean;
  /** Whether peers are asked for what comes next, ahead of the player. */
  background?: boolean;
  /** Bytes per second that the peer sends at most. */
  up?: number;
}

function setUp({ rate, seed, shared, later = { rate, from: 0 }, up = 2_000_000 }: Case) {
  const world = new World();
  stubGlobals(world);
  const draw = random(seed);
  const wavering = Array.from({ length: 600 }, () => 0.85 + 0.3 * draw());
  const network = new HomeNetwork(world, home, {
    rate: (ms) => (ms < later.from ? rate : later.rate) * wavering[Math.floor(ms / 1000) % 600]!,
    shared,
  });
  network.addNode('origin', { up: 125_000_000, down: 125_000_000 });
  network.addNode(home, { up: 500_000, down: 125_000_000 });
  network.addNode(helper, { up, down: 125_000_000 });
  const player = new Player(world, film, originLoader(world, network, home, film, draw), draw);
  return { world, network, player };
}

/** Gives a player a peer that has the whole film. Answers what it sent, and the reasons of the segments that came from the origin. */
function addPeer(
  { world, network, player }: ReturnType<typeof setUp>,
  background = false,
): { reasons: (string | undefined)[]; bytes: number; errors(): number | undefined } {
  const seen = {
    reasons: [] as (string | undefined)[],
    bytes: 0,
    errors: () => engine.snapshot().counters.errors,
  };
  const { engine, line, events } = viewerEngine(home, world, signer, { background: undefined, policy: { background } });
  engine.setLinking(true, !background);
  events.on('segment', ({ result }) => {
    seen.bytes += result.bytes.seed + result.bytes.peer;
    if (result.source === 'origin') seen.reasons.push(result.reason);
  });
  const seed = new Seed(helper, network, film, signer);
  // What is not asked for yet comes from viewers alone.
  const role = background ? 'viewer' : 'seed';
  if (background) seed.hold();
  world.setTimer(() => {
    engine.setLinking(false, false);
    const [mine, theirs] = network.link({ id: home, role: 'viewer' }, { id: helper, role });
    engine.addLink(mine);
    seed.addLink(theirs);
  }, 500);
  attachTo(player, engine, line, world);
  return seen;
}

async function play(c: Case, withPeer: boolean) {
  const s = setUp(c);
  const { world, player } = s;
  const peer = withPeer ? addPeer(s, c.background) : undefined;
  let over = false;
  void player.play(segments).then(() => {
    over = true;
  });
  while (!over && world.now() < 400_000) await world.runUntil(world.now() + 1_000);
  expect(over).toBe(true);
  // Else a viewer is compared with itself.
  if (peer) expect(peer.bytes).toBeGreaterThan(1_000_000);
  expect(peer?.errors()).toBeUndefined();
  const { chosen, estimates } = player;
  return {
    bitrate: chosen.reduce((sum, level) => sum + film.renditions[level]!.average, 0) / segments,
    switches: chosen.filter((level, i) => i > 0 && level !== chosen[i - 1]).length,
    estimate: estimates.slice(2).reduce((sum, estimate) => sum + estimate, 0) / (segments - 2),
    last: estimates.at(-1)!,
    stallMs: player.stallMs,
    /** Segments that the origin was asked for so that the line is measured. */
    looks: peer?.reasons.filter((reason) => reason === 'policy').length ?? 0,
  };
}

type Seen = ReturnType<typeof play>;

/** What is seen without the peer does not depend on where it sends. */
const alone = new Map<string, Seen>();
function watch(c: Case, withPeer: boolean): Seen {
  if (withPeer) return play(c, true);
  const key = `${c.rate} ${c.seed}`;
  const known = alone.get(key) ?? play(c, false);
  alone.set(key, known);
  return known;
}

/** At edges of the choice: elsewhere nothing that is nearly right chooses otherwise. */
const rates = [1_100_000, 1_900_000, 2_100_000, 2_200_000];
/**
 * One pair says nothing: at an edge the same rate with another wavering ends in another rendition. Over the forty pairs of
 * ten seeds the ratio of bitrates has a standard deviation of 0.03 to 0.05. It is 0.965 by either line, with 13 switches for 18 and
 * estimates of 0.98 to 1.02 (twelve other seeds: 0.983 by another line, 0.965 by the same). An estimate that is the lower of two means,
 * and a raced origin taken for the line, gave 0.94 to 0.97 and 0.81 to 0.83, with 1.4 and 3.9 times the switches.
 */
const seeds = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

test.each([
  ['by another line', false],
  ['by the same line', true],
])('with peers that send %s, hls.js estimates and chooses as without them', async (_, shared) => {
  const total = { with: { bitrate: 0, switches: 0 }, without: { bitrate: 0, switches: 0 } };
  for (const rate of rates) {
    const estimate = { with: 0, without: 0 };
    for (const seed of seeds) {
      for (const kind of ['with', 'without'] as const) {
        const seen = await watch({ rate, seed, shared }, kind === 'with');
        total[kind].bitrate += seen.bitrate;
        total[kind].switches += seen.switches;
        estimate[kind] += seen.estimate;
        // The estimate is not bought with segments that peers would have brought.
        if (kind === 'with') expect(seen.looks).toBeLessThanOrEqual(3);
      }
    }
    const ratio = estimate.with / estimate.without;
    expect(ratio, `estimate on ${rate}`).toBeGreaterThan(0.96);
    expect(ratio, `estimate on ${rate}`).toBeLessThan(1.12);
  }
  expect(total.with.bitrate).toBeGreaterThanOrEqual(0.94 * total.without.bitrate);
  expect(total.with.switches).toBeLessThanOrEqual(1.1 * total.without.switches);
});

test.each([
  false,
  true,
])('a line that falls is noticed within a minute and costs no stall (shared: %s)', async (shared) => {
  const c = { rate: 4_000_000, seed: 1, shared, later: { rate: 1_200_000, from: 30_000 } };
  const seen = await watch(c, true);
  expect(seen.last).toBeLessThan(2_400_000);
  expect(seen.stallMs).toBe(0);
});

test('pieces that peers send ahead all the time do not make every segment a look at the line', async () => {
  const seen = await watch({ rate: 3_000_000, seed: 1, shared: true, background: true, up: 200_000 }, true);
  // Of 22: 8 where only a transfer alone on the line puts the next look off.
  expect(seen.looks).toBeLessThanOrEqual(2);
});
