/** Viewers that meet by a relay alone (spec/schedule.md, Input, Relays). */
import { expect, it } from 'vitest';
import type { EngineDeps } from '../enginedeps.ts';
import type { Other, Viewer } from './actors.ts';
import { Film } from './film.ts';
import { figures, id, setUp } from './scene.ts';

const relayed = (v: Viewer) => v.engine.snapshot().totals.bytes.peer_relay;

/** A viewer that others of the kind reach by a relay. */
const scene = (film: Film, deps: Partial<EngineDeps> = {}) => {
  const it = setUp(film);
  const apart = (others?: Other[]) => {
    it.network.apart.add(id(it.viewers.length + 1));
    return it.viewer(others, deps);
  };
  return { ...it, apart };
};

it('a relay is asked only while no other peer can serve, and no longer than the origin rests', async () => {
  const film = new Film(60, 4000, 300_000);
  const { seed, viewers, apart, run } = scene(film);
  const first = apart();
  await run(20_000);
  const calm = apart();
  await run(20_000);
  expect(
    calm.engine
      .snapshot()
      .peers.map(({ role, path }) => `${role} ${path}`)
      .sort(),
  ).toEqual(['seed direct', 'viewer relay']);
  expect([relayed(first), relayed(calm)]).toEqual([0, 0]);

  seed.stop();
  film.broken = new Error('503');
  const late = apart(viewers);
  await run(30_000);
  expect(relayed(late)).toBeGreaterThan(300_000);
  expect(late.startupMs).toBeGreaterThan(0);
  expect(late.startupMs).toBeLessThan(5_000);

  film.broken = undefined;
  await run(30_000);
  const before = relayed(late);
  await run(40_000);
  expect(relayed(late)).toBe(before);
  expect(figures(viewers, film)).toMatchObject({ stalls: 0, wrong: 0 });
});

it('viewers that meet by relays alone ask each other as any', async () => {
  const film = new Film(20, 4000, 300_000);
  const ahead = () => ({
    allowed: false,
    waste_bytes: 0,
    role: 'relay-only' as const,
    battery: false,
  });
  const { viewers, apart, run } = scene(film, { ahead });
  apart();
  await run(10_000);
  const second = apart();
  await run(60_000);
  expect(relayed(second)).toBeGreaterThan(300_000);
  expect(figures(viewers, film)).toMatchObject({ stalls: 0, wrong: 0, errors: 0 });
});

it('what is on its way from a relay is waited for, and not asked for elsewhere', async () => {
  const film = new Film(20, 4000, 800_000);
  let waited = 0;
  const record: EngineDeps['record'] = ({ peers, requests }, actions) => {
    for (const { id, slots, holds, on_demand } of peers) {
      if (slots > 0 || !requests.some((r) => r.peer === id)) continue;
      waited++;
      expect([holds, on_demand]).toEqual([{}, false]);
      expect(actions.filter((a) => a.type === 'request' && a.peer === id)).toEqual([]);
    }
  };
  const { seed, viewers, apart, viewer, network, run } = scene(film);
  apart();
  await run(15_000);
  seed.stop();
  film.broken = new Error('503');
  network.apart.add(id(2));
  const late = viewer(viewers.slice(), { record });
  for (let ms = 0; ms < 6_000 && !late.engine.snapshot().peers.some((p) => p.downloads > 0); ms += 10) await run(10);
  // A seed comes back while pieces are on their way.
  expect(late.engine.snapshot().peers.some((p) => p.downloads > 0)).toBe(true);
  film.broken = undefined;
  const [mine, theirs] = network.link({ id: late.id, role: 'viewer' }, { id: seed.id, role: 'seed' });
  late.engine.addLink(mine);
  seed.addLink(theirs);
  await run(6_000);
  expect(waited).toBeGreaterThan(0);
  expect(late.engine.snapshot().totals.duplicate_bytes).toBe(0);
  expect(figures(viewers, film)).toMatchObject({ wrong: 0 });
});
