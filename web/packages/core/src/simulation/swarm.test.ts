import { describe, expect, it, vi } from 'vitest';
import type { EngineDeps } from '../engine.ts';
import { join, type Other, Seed, Viewer } from './actors.ts';
import { Film, Signer } from './film.ts';
import { Hostile, type Malice } from './hostile.ts';
import { type Line, Network, World } from './world.ts';

const fast: Line = { up: 12_500_000, down: 12_500_000 };
const id = (n: number) => n.toString(16).repeat(32).slice(0, 32);
const signer = new Signer();

const setUp = (film: Film, line: Line = fast) => {
  const world = new World();
  const network = new Network(world);
  network.addNode('origin', { up: 125_000_000, down: 125_000_000 });
  network.addNode(id(15), fast);
  const seed = new Seed(id(15), network, film, signer);
  const viewers: Viewer[] = [];
  /** A viewer that joins now and is linked to everybody else, unless said otherwise. */
  const viewer = (others: Other[] = [seed, ...viewers], deps: Partial<EngineDeps> = {}, adaptive = false) => {
    const n = viewers.length + 1;
    network.addNode(id(n), line);
    const v = new Viewer(id(n), network, film, signer, deps);
    v.adaptive = adaptive;
    join(network, v, others);
    v.play();
    viewers.push(v);
    return v;
  };
  const run = (ms: number) => world.runUntil(world.now() + ms);
  return { world, network, seed, viewers, viewer, run };
};

const figures = (viewers: Viewer[], film: Film) => {
  const sum = { origin: 0, seed: 0, peer: 0 };
  const later = { origin: 0, seed: 0, peer: 0 };
  for (const v of viewers)
    for (const k of ['origin', 'seed', 'peer'] as const) {
      sum[k] += v.bytes()[k];
      later[k] += v.bytes(2)[k];
    }
  const all = (b: typeof sum) => b.origin + b.seed + b.peer;
  return {
    offload: sum.peer / all(sum),
    afterTwo: (later.seed + later.peer) / all(later),
    originPerSegment: film.requests / film.ledger.size,
    stalls: viewers.reduce((n, v) => n + v.stalls, 0),
    wrong: viewers.reduce((n, v) => n + v.wrong, 0),
    errors: viewers.reduce((n, v) => n + v.errors.length, 0),
  };
};

const fine = { stalls: 0, wrong: 0, errors: 0 };

// Virtual time costs real time on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

describe('four viewers joining 5 s apart', () => {
  it.each([
    ['fast lines', fast],
    ['lines of 20/5 Mbit/s', { up: 625_000, down: 2_500_000 }],
    ['lines of 6/2 Mbit/s', { up: 250_000, down: 750_000 }],
  ])('share one copy: %s', async (_, line) => {
    const film = new Film(20, 4000, 750_000);
    const { viewers, viewer, run } = setUp(film, line);
    for (let n = 0; n < 4; n++) {
      viewer();
      await run(5_000);
    }
    await run(80_000);
    const f = figures(viewers, film);
    expect(viewers.map((v) => v.results.length)).toEqual([20, 20, 20, 20]);
    expect(f).toMatchObject(fine);
    // Uplinks of 2 Mbit/s carry a film of 1.5 Mbit/s three times only just.
    if (line.up < 500_000) return;
    expect(f.offload).toBeGreaterThanOrEqual(0.66);
    expect(f.afterTwo).toBeGreaterThanOrEqual(0.9);
    expect(f.originPerSegment).toBeLessThanOrEqual(1.4);
    // The first segment is not held up by anything.
    const plain = new Film(1, 4000, 750_000);
    const alone = setUp(plain, line);
    alone.viewer([]).engine.setOff('policy');
    await alone.run(5_000);
    for (const v of viewers) expect(v.startupMs).toBeLessThanOrEqual(1.05 * alone.viewers[0]!.startupMs);
  });
});

describe('three viewers in step', () => {
  it('take about one copy from the seed', async () => {
    const film = new Film(15, 4000, 750_000);
    const { seed, viewers, viewer, run } = setUp(film);
    const others: Other[] = [seed];
    for (let n = 0; n < 3; n++) others.push(viewer([...others]));
    await run(60_000);
    expect(figures(viewers, film)).toMatchObject(fine);
    expect(seed.sent / (film.bytes * 14)).toBeLessThan(1.35);
  });
});

describe('a hostile viewer', () => {
  const kinds: [Malice, string][] = [
    ['flip', 'bad-piece'],
    ['flip-then-stall', 'bad-piece'],
    ['false-have', 'false-have'],
    ['silent', 'timeout'],
    ['silent-mid-piece', 'stalled'],
    ['garbage', 'protocol-error'],
    ['forger', 'protocol-error'],
    ['flood', 'over-limit'],
  ];
  it.each(kinds)('%s: no wrong byte, no stall, nobody else blamed', async (malice, end) => {
    const film = new Film(16, 4000, 300_000);
    const { network, seed, viewers, viewer, run } = setUp(film);
    network.addNode(id(14), fast);
    const hostile = new Hostile(id(14), network, film, signer, malice);
    for (let n = 0; n < 3; n++) {
      viewer([hostile, seed, ...viewers]);
      await run(5_000);
    }
    await run(60_000);
    const f = figures(viewers, film);
    expect(viewers.map((v) => v.results.length)).toEqual([16, 16, 16]);
    expect(f).toMatchObject(fine);
    expect(f.offload).toBeGreaterThanOrEqual(0.5);
    expect(viewers.some((v) => v.unlinked.length)).toBe(true);
    for (const v of viewers) {
      expect(v.unlinked.filter((u) => u.peer !== hostile.id)).toEqual([]);
      // A viewer that has quicker holders may never have asked it for anything.
      if (v.unlinked.length) expect(v.unlinked.map((u) => u.reason)).toEqual([end]);
      if (end === 'bad-piece') expect(v.engine.snapshot().totals.rejected_bytes).toBeLessThanOrEqual(8 * 16384);
    }
  });
});

describe('a viewer with a small cache', () => {
  it('gives up segments, says so, and is not blamed for it', async () => {
    const film = new Film(20, 4000, 300_000);
    const { seed, viewers, viewer, run } = setUp(film);
    for (let n = 0; n < 3; n++) {
      viewer([seed, ...viewers], { cacheBytes: 1_300_000 });
      await run(9_000);
    }
    await run(80_000);
    expect(figures(viewers, film)).toMatchObject(fine);
    for (const v of viewers) {
      expect(v.unlinked).toEqual([]);
      expect(v.engine.snapshot().cacheBytes).toBeLessThanOrEqual(1_300_000);
    }
  });
});

describe('a player that chooses renditions itself', () => {
  it('gets a sample of the line once a minute', async () => {
    const film = new Film(40, 4000, 300_000);
    const { viewers, viewer, run } = setUp(film);
    viewer();
    await run(3_000);
    const v = viewer(undefined, {}, true);
    await run(150_000);
    expect(v.results.length).toBe(40);
    expect(figures(viewers, film)).toMatchObject(fine);
    // 12.5 MB/s, by a fast line of 300 kB in 24 ms.
    expect(v.engine.capacity()! / 100_000_000).toBeGreaterThan(0.7);
    expect(v.engine.capacity()! / 100_000_000).toBeLessThan(1.3);
    expect(v.engine.snapshot().totals.reasons.policy).toBe(2);
  });
});

describe('what breaks', () => {
  it('goes on without the seed and without links', async () => {
    const film = new Film(20, 4000, 300_000);
    const { seed, viewers, viewer, run } = setUp(film);
    viewer();
    await run(5_000);
    viewer();
    await run(10_000);
    seed.stop();
    await run(15_000);
    for (const v of viewers) v.engine.setOff('policy');
    await run(70_000);
    expect(figures(viewers, film)).toMatchObject(fine);
    expect(viewers.map((v) => v.results.length)).toEqual([20, 20]);
    expect(viewers[0]!.engine.snapshot().totals.reasons.policy).toBeGreaterThan(0);
  });

  it('hands on the failure of the origin as it is', async () => {
    const film = new Film(3, 4000, 300_000);
    const { viewer, run } = setUp(film);
    film.broken = new Error('404');
    const v = viewer([]);
    await run(5_000);
    expect(v.errors).toEqual([film.broken]);
  });

  it('plays what the origin sends when it contradicts a certificate, and stops sharing', async () => {
    const film = new Film(20, 4000, 300_000);
    const { viewer, run, seed } = setUp(film);
    const v = viewer([seed]);
    const offs: string[] = [];
    v.engine.on('off', ({ reason }) => offs.push(reason));
    await run(2_000);
    for (const s of film.segments) film.replace(s.name, `other ${s.name}`);
    // What the seed certified so far is the old content.
    const late = viewer([seed]);
    late.engine.on('off', ({ reason }) => offs.push(reason));
    await run(8_000);
    expect(late.engine.snapshot().totals.contradictions).toBeGreaterThan(0);
    // Whole segments of the old or of the new content, never a mixture: checked byte by byte below.
    const old = new Film(20, 4000, 300_000);
    for (const [n, r] of late.results.entries()) {
      const { name } = film.segments[n]!;
      const got = Buffer.from(r.data);
      expect(got.equals(film.content(name)) || got.equals(old.content(name))).toBe(true);
    }
  });

  it('withdraws a name under which two contents were certified, and a revocation heals it', async () => {
    const film = new Film(12, 4000, 300_000);
    const old = new Film(12, 4000, 300_000);
    for (const s of film.segments) film.replace(s.name, `other ${s.name}`);
    const { network, viewer, run } = setUp(film);
    // One seed fetched before the re-encoding, the other after it; each viewer knows one of them.
    const seeds = [old, film].map((f, n) => new Seed(id(12 + n), network, f, signer));
    for (const s of seeds) network.addNode(s.id, fast);
    const first = viewer([seeds[0]!]);
    const second = viewer([seeds[1]!, first]);
    await run(20_000);
    expect(first.unlinked.concat(second.unlinked)).toEqual([]);
    for (const v of [first, second]) {
      expect([v.stalls, v.errors.length]).toEqual([0, 0]);
      for (const [n, { data }] of v.results.entries()) {
        const { name } = film.segments[n]!;
        expect([film, old].some((f) => Buffer.from(data).equals(f.content(name)))).toBe(true);
      }
    }
    const { contradictions, reasons } = second.engine.snapshot().totals;
    expect(contradictions).toBeGreaterThan(0);
    expect(reasons['no-cert']).toBeGreaterThan(0);
    for (const v of [first, second])
      v.engine.revoke([{ site: 'demo', prefix: '/', minIssuedAt: Number.MAX_SAFE_INTEGER }]);
    expect(second.engine.snapshot().segments).toBe(0);
  });

  it('loads on by itself after stop', async () => {
    const film = new Film(3, 4000, 300_000);
    const { viewer, run } = setUp(film);
    const v = viewer();
    await run(50);
    v.engine.stop();
    await run(5_000);
    expect([v.results.length, v.errors.length]).toEqual([3, 0]);
    expect(v.engine.snapshot()).toMatchObject({ peers: [], segments: 0 });
  });
});
