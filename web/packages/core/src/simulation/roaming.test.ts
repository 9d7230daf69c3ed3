import { expect, it } from 'vitest';
import type { Viewer } from './actors.ts';
import { Film } from './film.ts';
import { figures, id, setUp } from './scene.ts';
import type { SimLink } from './world.ts';

/** Three viewers and a seed, all linked. The tracker introduces a viewer that hurries to all, as to a peer that has just come. */
const watch = async (film: Film, mover: number) => {
  const s = setUp(film);
  const { network, seed, viewers, world } = s;
  const links = new Map<string, SimLink>();
  const hurries: number[] = [];
  const connect = (v: Viewer, other: Viewer | typeof seed) => {
    const role = other === seed ? 'seed' : 'viewer';
    const [mine, theirs] = network.link({ id: v.id, role: 'viewer' }, { id: other.id, role });
    links.set(`${v.id} ${other.id}`, mine);
    links.set(`${other.id} ${v.id}`, theirs);
    v.engine.addLink(mine);
    if (other === seed) seed.addLink(theirs);
    else (other as Viewer).engine.addLink(theirs);
  };
  let moved = () => {};
  for (let n = 0; n < 3; n++) {
    const v = s.viewer([], {
      hurry() {
        if (n === mover) hurries.push(world.now());
        for (const other of [seed, ...viewers.filter((x) => x !== v)]) {
          const named = () =>
            links.get(`${v.id} ${other.id}`)!.onNamed?.(() => world.setTimer(() => connect(v, other), 300));
          world.setTimer(named, 500);
        }
      },
      onMoved(f) {
        if (n === mover) moved = f;
        return () => {};
      },
    });
    for (const other of [seed, ...viewers.filter((x) => x !== v)]) connect(v, other);
    await s.run(6_000);
  }
  const linked = () => [...links].filter(([ends, link]) => ends.startsWith(id(mover + 1)) && link.works).length;
  return { ...s, hurries, linked, moved: () => moved() };
};

it.each([
  0, 1, 2,
])('viewer %i, which moves, is linked again five seconds after it asks a peer, and none is blamed', async (mover) => {
  const film = new Film(30, 4000, 300_000);
  const { network, world, viewers, run, linked, hurries } = await watch(film, mover);
  expect(linked()).toBe(3);
  network.moves(id(mover + 1));
  const at = world.now();
  expect(linked()).toBe(0);
  await run(5_000 + film.durationMs);
  // Nothing is asked of any peer for a while, and then it takes three looks.
  expect(hurries).toHaveLength(1);
  expect(linked()).toBe(3);
  await run(100_000);
  expect(hurries[0]! - at).toBeLessThan(film.durationMs + 5_000);
  for (const v of viewers) expect(v.unlinked.filter(({ reason }) => !/closed|timeout/.test(reason))).toEqual([]);
  expect(figures(viewers, film)).toMatchObject({ stalls: 0, wrong: 0, errors: 0 });
});

it('a viewer told by the browser that it moved does not wait for silence', async () => {
  const film = new Film(30, 4000, 300_000);
  const { network, run, linked, hurries, moved } = await watch(film, 1);
  network.moves(id(2));
  moved();
  await run(1_600);
  expect([linked(), hurries.length]).toEqual([3, 1]);
});

it('a viewer that moves asks the origin anew for what it was sending', async () => {
  const film = new Film(3, 4000, 2_000_000);
  const { network, viewer, run } = setUp(film);
  let moved = () => {};
  const v = viewer([], {
    onMoved(f) {
      moved = f;
      return () => {};
    },
  });
  await run(100);
  expect([film.requests, v.results.length]).toEqual([1, 0]);
  network.moves(v.id);
  moved();
  await run(3_000);
  expect([film.ledger.get('/film/0.ts'), v.results[0]?.source, v.errors]).toEqual([2, 'origin', []]);
  expect(v.engine.snapshot().totals.wasted_bytes).toBeGreaterThan(0);
});
