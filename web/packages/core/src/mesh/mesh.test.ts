import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Mesh } from './mesh.ts';
import { maxPath, maxSlots, none, tellEvery, trial } from './place.ts';

const id = (n: number) => n.toString(16).padStart(2, '0').padEnd(32, '0');
const seed = id(0xff);

/** Nodes that are all linked. Messages arrive with the next step; until the end some links break and are made again. */
class Colony {
  now = 0;
  readonly nodes = new Map<string, Mesh>();
  readonly slots = new Map<string, number>();

  constructor() {
    this.add(seed, new Mesh({ self: seed, stripes: 4, slots: 8, perStripe: 2, seed: true }), 8);
  }

  add(n: string, m: Mesh, slots: number) {
    for (const [other, o] of this.nodes) {
      o.linked(n);
      m.linked(other);
    }
    this.nodes.set(n, m);
    this.slots.set(n, slots);
  }

  join(n: string, slots: number, sources: boolean) {
    if (this.nodes.has(n) || this.nodes.size >= 24) return;
    const m = new Mesh({ self: n, stripes: 4, slots });
    m.canSource(sources);
    this.add(n, m, slots);
  }

  leave(at: number) {
    const n = [...this.nodes.keys()][at];
    if (n === undefined || n === seed) return;
    this.nodes.delete(n);
    for (const o of this.nodes.values()) o.gone(n);
  }

  step(breaks: (message: number) => boolean) {
    this.now += 100_000;
    let message = 0;
    for (const [n, m] of this.nodes) {
      /** Channels are reliable: what is lost is lost with its link, and with it what is sent behind it. */
      const broken = new Set<string>();
      for (const { to, ...said } of m.decide(this.now)) {
        if (breaks(message++)) broken.add(to);
        if (!broken.has(to)) this.nodes.get(to)?.heard(this.now, n, said);
      }
      for (const to of broken) this.relink(n, to);
      for (let stripe = 0; stripe < 4; stripe++)
        if (m.path(stripe).length) for (const child of m.children(stripe)) this.nodes.get(child)?.arrived(n, stripe);
    }
  }

  private relink(a: string, b: string) {
    const [one, other] = [this.nodes.get(a), this.nodes.get(b)];
    if (!one || !other) return;
    one.gone(b);
    other.gone(a);
    one.linked(b);
    other.linked(a);
  }

  /** What is wrong with the trees, and how many stripes are fed. */
  check(): { faults: string[]; fed: number } {
    const faults: string[] = [];
    let fed = 0;
    for (const [n, m] of this.nodes) {
      let children = 0;
      for (let stripe = 0; stripe < 4; stripe++) {
        children += m.children(stripe).length;
        const path = m.path(stripe);
        if (path.length > maxPath) faults.push(`a path of ${path.length}`);
        if (new Set(path).size < path.length) faults.push(`a loop at ${n}`);
        const above = path.at(-2);
        if (above === undefined) continue;
        fed++;
        const parent = this.nodes.get(above);
        if (!parent?.children(stripe).includes(n)) faults.push(`${n} has a parent that does not know it`);
        else if (`${parent.path(stripe)}` !== `${path.slice(0, -1)}`) faults.push(`${n} is elsewhere than its parent`);
      }
      if (children > this.slots.get(n)!) faults.push(`${n} has ${children} children`);
    }
    return { faults, fed };
  }
}

const event = fc.record({
  join: fc.option(fc.integer({ min: 1, max: 200 }), { freq: 5 }),
  slots: fc.constantFrom(0, 3, 12),
  sources: fc.boolean(),
  leave: fc.option(fc.integer({ min: 1, max: 23 }), { freq: 19 }),
  breaksEach: fc.integer({ min: 20, max: 80 }),
});

test('trees of many nodes have no loops, whatever comes, goes and breaks', () => {
  fc.assert(
    fc.property(fc.array(event, { minLength: 60, maxLength: 120 }), (events) => {
      const colony = new Colony();
      for (const { join, slots, sources, leave, breaksEach } of events) {
        if (join !== null) colony.join(id(join), slots, sources);
        if (leave !== null) colony.leave(leave);
        colony.step((message) => message % breaksEach === 7);
      }
      for (let i = 0; i < 100; i++) colony.step(() => false);
      // A child that has just lost its place to a stronger one hears of it with the next step.
      for (let i = 0; i < 3 && colony.check().faults.length; i++) colony.step(() => false);
      const { faults, fed } = colony.check();
      expect(faults).toEqual([]);
      expect(fed).toBeGreaterThanOrEqual(Math.min(8, 4 * (colony.nodes.size - 1)));
    }),
    { numRuns: 8, endOnFailure: true },
  );
});

test('what is out of range is ignored', () => {
  const m = new Mesh({ self: id(1), stripes: 4, slots: 8 });
  for (const stripe of [-1, 4, 1 << 20]) {
    m.heard(0, id(2), { type: 'subscribe', stripe, slots: 1 });
    m.heard(0, id(2), { type: 'place', stripe, rank: 0, path: [id(2)], room: 1, least: maxSlots });
  }
  expect(m.decide(0)).toEqual([]);
});

test('a peer that changes its place all the time makes few messages', () => {
  const m = new Mesh({ self: id(1), stripes: 4, slots: 8 });
  m.linked(id(3));
  const says = (now: number, path: string[]) =>
    m.heard(now, id(2), { type: 'place', stripe: 0, rank: 7, path, room: 1, least: maxSlots });
  says(0, [id(2)]);
  m.decide(0);
  m.arrived(id(2), 0);
  let told = 0;
  for (let now = 0; now < 10_000_000; now += 1_000) {
    says(now, [id((now / 1000) % 256), id(2)]);
    m.arrived(id(2), 0);
    told += m.decide(now).filter((s) => s.to === id(3) && s.type === 'place').length;
  }
  expect(told).toBeLessThanOrEqual(10_000_000 / tellEvery);
  expect(told).toBeGreaterThan(10);
});

test('a peer on trial is no parent; nothing that a peer says is waited for', () => {
  const m = new Mesh({ self: id(1), stripes: 4, slots: 8 });
  m.heard(0, seed, { type: 'place', stripe: 0, rank: 0, path: [seed], room: 2, least: maxSlots });
  m.decide(0);
  expect([m.kept(), m.parent(0)]).toEqual([[], undefined]);
  expect(m.decide(trial)).toContainEqual({ to: seed, type: 'unsubscribe', stripe: 0 });
  expect(m.path(0)).toEqual([]);
  expect(none).toBe(2 ** 53 - 1);
});

test('parents that are lost are counted, however that came; one that gives way to a better one is not', () => {
  const [self, parent] = [id(1), id(2)];
  const place = { rank: 7, path: [id(5), parent], room: 1, least: 0 };
  const cases: [string, (m: Mesh) => void, number][] = [
    ['refuses', (m) => m.heard(3, parent, { type: 'end', stripe: 0 }), 1],
    ['is gone', (m) => m.gone(parent), 1],
    ['is fed by this node', (m) => m.heard(3, parent, { type: 'place', stripe: 0, ...place, path: [self, parent] }), 1],
    [
      'misses two parts',
      (m) => {
        m.missed(3, 0);
        m.missed(4, 0);
      },
      1,
    ],
    [
      'gives way',
      (m) => {
        m.heard(3, seed, { type: 'place', stripe: 0, rank: 0, path: [seed], room: 2, least: maxSlots });
        m.decide(4);
        m.arrived(seed, 0);
      },
      0,
    ],
  ];
  for (const [name, lose, lost] of cases) {
    const m = new Mesh({ self, stripes: 4, slots: 8 });
    m.heard(0, parent, { type: 'place', stripe: 0, ...place });
    m.decide(0);
    m.arrived(parent, 0);
    expect(m.trees(), name).toEqual({ hops: 2, lost: 0 });
    lose(m);
    expect(m.trees().lost, name).toBe(lost);
  }
});
