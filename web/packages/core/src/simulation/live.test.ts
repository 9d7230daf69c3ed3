/** A page behind a thin line among others at the edge of a live stream. */
import { expect, test, vi } from 'vitest';
import type { ScheduleInput } from '../schedule/input.ts';
import { Film } from './film.ts';
import { figures, fine, setUp } from './scene.ts';

// Virtual time costs real time on a busy machine.
vi.setConfig({ testTimeout: 240_000 });

const [segmentMs, segmentBytes] = [2_000, 400_000];
/** Segments in the playlist, and how many of them are ahead of a viewer that begins. */
const [window, behind] = [6, 3];
const line = { up: 625_000, down: 2_500_000 };
/** It brings a segment in 1.07 s. */
const thin = 375_000;

/** When each of five viewers asks for a segment, in ms after it is there. */
const phases = [
  [1_700, 1_300, 900, 500, 100],
  [1_500, 1_200, 1_000, 600, 300],
  [1_900, 1_800, 700, 400, 50],
];

/** Has five viewers watch a live stream, one of them behind a thin line. `live`: what players say of it. */
const watch = async (live: boolean, phases: number[], slow: number) => {
  const film = new Film(40, segmentMs, segmentBytes);
  const { world, network, seed, viewer, viewers, run } = setUp(film, line);
  const begunAt = world.now();
  const seen: ScheduleInput[] = [];
  for (const [n, phaseMs] of phases.entries()) {
    viewer(undefined, { record: (input) => void seen.push(input) }, false, (v) => {
      if (n === slow) network.falls(v.id, thin);
      v.live = live;
      v.tells = 0;
      v.dueMs = (k) => begunAt + (k + 1 - window) * segmentMs + phaseMs - world.now();
      v.play(window + n - behind);
    });
    await run(segmentMs);
  }
  await run(50_000);
  const told = seed.peers.map(({ holdings }) => Object.values(holdings.holds));
  return { film, viewers, seen, told, last: viewers[slow]!.bytes(3) };
};

type Page = Awaited<ReturnType<typeof watch>>;
const share = (of: keyof Page['last'], { last }: Page) => last[of] / (last.origin + last.seed + last.peer);

// Which viewer comes first decides much of a single stream: over these six the page has from 0.15 to 0.91 from peers.
test('has most of it from the others: what is not published fills no buffer', async () => {
  let fromPeers = 0;
  for (const slow of [4, 2]) {
    for (const each of phases) {
      const page = await watch(true, each, slow);
      const { film, viewers, seen, told } = page;
      expect(figures(viewers, film)).toMatchObject(fine);
      expect(viewers.map((v) => v.results.length).every((n) => n > 25)).toBe(true);
      expect(seen.filter(({ segments }) => segments.length).every(({ live }) => live)).toBe(true);
      expect(told.every((held) => held.length > 20 && held.every((of) => of === 'complete'))).toBe(true);
      expect(share('origin', page)).toBeLessThan(0.1);
      fromPeers += share('peer', page) / 6;
    }
  }
  expect(fromPeers).toBeGreaterThan(0.6);
});

test('has it from the origin where it is taken for a film: no request waits with less than 10 s in hand', async () => {
  const taken = await watch(false, phases[0]!, 4);
  expect(taken.seen.some(({ live }) => live)).toBe(false);
  expect(taken.told.flat()).toEqual([]);
  expect(share('origin', taken)).toBeGreaterThan(0.9);
});
