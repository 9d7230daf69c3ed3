/**
 * What hls.js makes of peers that have become slow, in virtual time: its own bitrate choice, our loader and engine. A line that carries
 * the best rendition carries it with them, too.
 */
import { afterEach, expect, test, vi } from 'vitest';
import type { PeerRole } from '../../core/src/ports.ts';
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

/** Bits per second of the line; of a peer, what it is, and bytes per second that it sends from the sixth second on. */
async function play(rate: number, peer?: { role: PeerRole; up: number }) {
  const world = new World();
  stubGlobals(world);
  const draw = random(1);
  const network = new HomeNetwork(world, home, { rate: () => rate, shared: false });
  network.addNode('origin', { up: 125_000_000, down: 125_000_000 });
  network.addNode(home, { up: 500_000, down: 125_000_000 });
  network.addNode(helper, { up: 2_000_000, down: 125_000_000 });
  const player = new Player(world, film, originLoader(world, network, home, film, draw), draw);
  let givenUp = 0;
  player.on('hlsFragLoadEmergencyAborted', () => void givenUp++);
  let fromPeers = 0;
  let errors: () => number | undefined = () => undefined;
  if (peer) {
    const { engine, line, events } = viewerEngine(home, world, signer, {
      background: undefined,
      policy: { background: false },
    });
    events.on('segment', ({ result: { bytes } }) => {
      fromPeers += bytes.seed + bytes.peer;
    });
    errors = () => engine.snapshot().counters.errors;
    const seed = new Seed(helper, network, film, signer);
    if (peer.role === 'viewer') seed.hold();
    engine.setLinking(true, true);
    world.setTimer(() => {
      engine.setLinking(false, false);
      const [mine, theirs] = network.link({ id: home, role: 'viewer' }, { id: helper, role: peer.role });
      engine.addLink(mine);
      seed.addLink(theirs);
    }, 500);
    world.setTimer(() => {
      network.lineOf(helper).up = peer.up;
    }, 6_000);
    attachTo(player, engine, line, world);
  }
  let over = false;
  void player.play(segments).then(() => {
    over = true;
  });
  while (!over && world.now() < 400_000) await world.runUntil(world.now() + 1_000);
  expect([over, errors()]).toEqual([true, undefined]);
  return { givenUp, chosen: player.chosen, stallMs: player.stallMs, fromPeers };
}

test.each(
  [2_500_000, 4_000_000].flatMap((rate) =>
    (['viewer', 'seed'] as const).flatMap((role) => [15_000, 40_000, 80_000].map((up) => ({ rate, role, up }))),
  ),
)('no segment is given up for a $role of $up bytes/s on a line of $rate bit/s', async ({ rate, role, up }) => {
  const [without, seen] = [await play(rate), await play(rate, { role, up })];
  expect(seen).toMatchObject({ givenUp: 0, stallMs: 0, chosen: without.chosen });
  expect(seen.fromPeers).toBeGreaterThan(0);
});
