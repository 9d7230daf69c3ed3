import { describe, expect, it } from 'vitest';
import { type Other, Seed } from './actors.ts';
import { Film } from './film.ts';
import { fast, figures, fine, id, setUp, signer } from './scene.ts';

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
    // The film takes 75 kB/s.
    const { viewers, viewer, run } = setUp(film, { up: 12_500_000, down: 280_000 });
    viewer();
    await run(3_000);
    const v = viewer(undefined, {}, true);
    await run(150_000);
    expect(v.results.length).toBe(40);
    expect(figures(viewers, film)).toMatchObject(fine);
    expect(v.engine.capacity()! / 2_240_000).toBeGreaterThan(0.7);
    expect(v.engine.capacity()! / 2_240_000).toBeLessThan(1.3);
    expect(v.engine.snapshot().totals.reasons.policy).toBe(2);
  });

  it('gets none on a line that carries four times what it plays', async () => {
    const { viewer, run } = setUp(new Film(40, 4000, 300_000), { up: 12_500_000, down: 320_000 });
    viewer();
    await run(3_000);
    const v = viewer(undefined, {}, true);
    await run(150_000);
    expect(v.results.length).toBe(40);
    expect(v.engine.snapshot().totals.reasons.policy).toBeUndefined();
  });
});

describe('what breaks', () => {
  it.each([
    ['by the controller of their host leaves their uplinks free', true],
    ['without it would fill them', false],
  ])('what viewers send %s', async (_, lawful) => {
    const film = new Film(12, 4000, 500_000);
    const { network, viewer, run } = setUp(film, { up: 250_000, down: 12_500_000 });
    const deps = lawful ? {} : { background: undefined };
    const first = viewer(undefined, deps);
    await run(8_000);
    for (let i = 0; i < 3; i++) viewer(undefined, deps);
    const waits: number[] = [];
    for (let i = 0; i < 300; i++) {
      await run(100);
      waits.push(network.waiting(id(1)) / 250);
    }
    waits.sort((a, b) => a - b);
    // ms, at the 95th percentile; a single message of 16 KiB is 65.
    if (lawful) expect(waits[285]).toBeLessThan(200);
    else expect(waits[285]).toBeGreaterThan(600);
    expect(first.engine.snapshot().totals.uploaded.direct).toBeGreaterThan(lawful ? 1_500_000 : 3_000_000);
  });

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

  it.each([
    ['asks the origin for what is left alone', false],
    ['asks an origin without ranges for the whole', true],
  ])('%s', async (_, wholes) => {
    const film = new Film(6, 4000, 1_000_000);
    film.wholes = wholes;
    // An uplink that brings a part of a segment by the time that it becomes urgent.
    const { viewer, run, seed } = setUp(film, { up: 60_000, down: 4_000_000 });
    const first = viewer([seed]);
    await run(30_000);
    const late = viewer([first]);
    await run(60_000);
    const { bytes, duplicate_bytes } = late.engine.snapshot().totals;
    expect([late.results.length, late.stalls, late.errors.length]).toEqual([6, 0, 0]);
    for (const [n, { data }] of late.results.entries())
      expect(Buffer.from(data).equals(film.content(film.segments[n]!.name))).toBe(true);
    expect(bytes.peer).toBeGreaterThan(wholes ? 150_000 : 500_000);
    if (wholes) expect(duplicate_bytes).toBeGreaterThan(150_000);
    else expect(duplicate_bytes).toBeLessThan(100_000);
    expect(bytes.peer + bytes.seed + bytes.origin - duplicate_bytes).toBe(6_000_000);
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
    v.events.on('off', ({ reason }) => offs.push(reason));
    await run(2_000);
    for (const s of film.segments) film.replace(s.name, `other ${s.name}`);
    // What the seed certified so far is the old content, and the origin has to send it.
    seed.silent = true;
    const late = viewer([seed]);
    late.events.on('off', ({ reason }) => offs.push(reason));
    await run(8_000);
    expect(late.engine.snapshot().totals.contradictions).toBeGreaterThan(0);
    expect(offs).toEqual(['policy']);
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
