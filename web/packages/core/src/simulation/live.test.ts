/** A page behind a thin line among others at the edge of a live stream. */
import { expect, test, vi } from 'vitest';
import type { ScheduleInput } from '../schedule/input.ts';
import { Film } from './film.ts';
import { figures, fine, setUp } from './scene.ts';

// Virtual time costs real time on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

const [segmentMs, segmentBytes] = [2_000, 400_000];
/** Segments in the playlist, and how many of them are ahead of a viewer that begins. */
const [window, behind] = [6, 3];
const line = { up: 625_000, down: 2_500_000 };
/** It brings a segment in 1.07 s. */
const thin = 375_000;

/** Has five viewers watch a live stream; the one behind a thin line asks for each segment first. `live`: what players say of it. */
const watch = async (live: boolean) => {
  const film = new Film(40, segmentMs, segmentBytes);
  const { world, network, viewer, viewers, run } = setUp(film, line);
  const begunAt = world.now();
  const seen: ScheduleInput[] = [];
  for (const [n, phaseMs] of [1_700, 1_300, 900, 500, 100].entries()) {
    viewer(undefined, { record: (input) => void seen.push(input) }, false, (v) => {
      if (n === 4) network.falls(v.id, thin);
      v.live = live;
      v.tells = 0;
      v.dueMs = (k) => begunAt + (k + 1 - window) * segmentMs + phaseMs - world.now();
      v.play(window + n - behind);
    });
    await run(segmentMs);
  }
  await run(50_000);
  return { film, viewers, seen, last: viewers.at(-1)!.bytes(3) };
};

test('has most of it from the others: what is not published fills no buffer', async () => {
  type Bytes = Awaited<ReturnType<typeof watch>>['last'];
  const share = (of: keyof Bytes, { last }: { last: Bytes }) => last[of] / (last.origin + last.seed + last.peer);
  const page = await watch(true);
  const { film, viewers, seen } = page;
  expect(figures(viewers, film)).toMatchObject(fine);
  expect(viewers.map((v) => v.results.length).every((n) => n > 25)).toBe(true);
  expect(seen.filter(({ segments }) => segments.length).every(({ live }) => live)).toBe(true);
  expect(share('origin', page)).toBeLessThan(0.1);
  expect(share('peer', page)).toBeGreaterThan(0.4);
  // Taken for a film, it would be waited for by no request with less than 10 s in hand.
  const taken = await watch(false);
  expect(taken.seen.some(({ live }) => live)).toBe(false);
  expect(share('origin', taken)).toBeGreaterThan(0.9);
});
