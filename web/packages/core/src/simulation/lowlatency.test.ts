/** Pages that play a low-latency stream, and share its parts. */
import { describe, expect, it, vi } from 'vitest';
import * as seldom from '../seldom.ts';
import { audience, fine, home, pollute, quick, seedId, setUp, share, slow, wasted } from './partscene.ts';
import type { PartViewer } from './partviewer.ts';
import { fast } from './scene.ts';

// Virtual time costs real time on a busy machine.
vi.setConfig({ testTimeout: 300_000 });

const counters = (v: PartViewer) => v.engine.snapshot().counters;

describe('twelve pages of a low-latency stream', () => {
  it('share its parts', async () => {
    const scene = setUp();
    const { viewers, run } = scene;
    await audience(scene, 12);
    await run(45_000);
    fine(viewers);
    const s = share(viewers);
    // The bar of docs/experiments/parts.md.
    expect(s.peer).toBeGreaterThan(0.55);
    expect(s.origin).toBeLessThan(0.15);
    for (const v of viewers) {
      const { totals, peers } = v.engine.snapshot();
      expect(peers).toHaveLength(12);
      expect(totals).toMatchObject({ rejected_bytes: 0, contradictions: 0 });
      const { origin, seed, peer, hops } = totals.parts!;
      expect({ seed, peer }).toEqual({ seed: totals.segments.seed, peer: totals.segments.peer });
      // What came before the script was a segment for all that the engine knew.
      expect(totals.segments.origin - origin).toBeLessThanOrEqual(2);
      // A source is at most six hops away (docs/experiments/parts.md).
      expect(hops).toBeGreaterThan(0.5 * (seed + peer));
      expect(hops).toBeLessThan(7 * v.results.length);
      expect(totals.bytes.peer + totals.bytes.seed).toBeGreaterThan(0);
      expect(v.unlinked).toEqual([]);
    }
    // What came twice, and what the origin was asked for and then not needed.
    expect(wasted(viewers)).toBeLessThan(0.08);
  });

  it('share parts of 200 ms as well', async () => {
    const scene = setUp({ partMs: 200 });
    const { viewers, run } = scene;
    await audience(scene, 12);
    await run(20_000);
    fine(viewers);
    // A few hops take longer than half of such a part: 0.3 where it was waited for no longer than that.
    expect(share(viewers).peer).toBeGreaterThan(0.65);
    expect(wasted(viewers)).toBeLessThan(0.08);
  });

  it('take as many children as their lines carry', async () => {
    const scene = setUp();
    const { viewers, viewer, run } = scene;
    // What eight children take is twice what four of these lines carry.
    for (const line of [slow, home, slow, quick, home, quick, slow, home, home, slow, home, quick]) {
      viewer({ line });
      await run(700);
    }
    await run(45_000);
    fine(viewers);
    expect(share(viewers).peer).toBeGreaterThan(0.7);
    expect(wasted(viewers)).toBeLessThan(0.08);
  });

  it('go on with the origin when the seed dies without a word', async () => {
    const scene = setUp();
    const { viewers, network, run } = scene;
    await audience(scene, 12);
    await run(15_000);
    network.moves(seedId);
    const before = viewers.map((v) => v.results.length);
    await run(20_000);
    fine(viewers);
    // Nothing is certified any more, and nothing later than from the origin.
    for (const [i, v] of viewers.entries()) expect(v.results.length).toBeGreaterThanOrEqual(before[i]! + 39);
    const last = viewers.map((v) => v.results.slice(-10));
    for (const r of last.flat()) expect(r.source).toBe('origin');
    for (const v of viewers) expect(v.engine.snapshot().totals.parts!.lost).toBeGreaterThan(0);
  });

  it('drop one that sends wrong bytes at the first piece, and pass none on', async () => {
    const scene = setUp();
    const { viewers, viewer, run } = scene;
    const polluter = viewer({ line: fast, meddle: pollute });
    await run(1_000);
    await audience(scene, 11);
    await run(30_000);
    fine(viewers);
    const honest = viewers.slice(1);
    const banned = honest.flatMap((v) => v.unlinked);
    expect(banned.length).toBeGreaterThan(0);
    for (const u of banned) expect(u).toMatchObject({ peer: polluter.id, reason: 'bad-piece', banned: true });
    // One wrong piece each, two that came together at worst.
    for (const v of honest) {
      const { rejected_bytes } = v.engine.snapshot().totals;
      expect(rejected_bytes).toBeLessThanOrEqual(2 * 16_384);
      // The piece that banned is counted, also where another peer had sent it before.
      expect(rejected_bytes > 0).toBe(v.unlinked.length > 0);
    }
    expect(share(honest, 40).peer).toBeGreaterThan(0.5);
  });
});

describe('a page', () => {
  it('plays by the origin where the script of the node does not come, and asks again', async () => {
    const scene = setUp();
    const { viewers, viewer, run } = scene;
    await audience(scene, 3);
    let asked = 0;
    const missing = viewer({ deps: { loadSeldom: () => (asked++ < 2 ? Promise.reject(new Error('404')) : come()) } });
    const come = async () => seldom;
    await run(9_000);
    expect(asked).toBe(1);
    expect(share([missing]).origin).toBe(1);
    expect(counters(missing)).toMatchObject({ script_missing: 1 });
    await run(12_000);
    expect(asked).toBe(2);
    expect(share([missing]).origin).toBe(1);
    await run(25_000);
    // It knows what its peers have said meanwhile.
    expect(asked).toBe(3);
    expect(share([missing], missing.results.length - 20).origin).toBeLessThan(0.1);
    fine(viewers);
  });

  it('that has no such script speaks of no parts', async () => {
    const scene = setUp();
    const { viewers, viewer, run } = scene;
    await audience(scene, 2);
    const old = viewer({ deps: { loadSeldom: undefined } });
    await run(10_000);
    fine(viewers);
    expect(share([old]).origin).toBe(1);
    expect(counters(old)).not.toHaveProperty('unknown_messages');
    expect(old.unlinked).toEqual([]);
  });

  it('that does not upload takes parts, and no children', async () => {
    const scene = setUp();
    const { viewers, viewer, run } = scene;
    await audience(scene, 3);
    const leech = viewer({ deps: { uploads: () => false } });
    await run(1_000);
    await audience(scene, 4);
    await run(20_000);
    fine(viewers);
    expect(leech.engine.snapshot().totals.uploaded).toEqual({ direct: 0, relay: 0 });
    expect(share([leech], 20).origin).toBeLessThan(0.1);
  });

  it('sends no more than the site lets it', async () => {
    const scene = setUp();
    const { viewers, viewer, run } = scene;
    const kbps = 500; // two stripes of 240 kbit/s
    const ahead = () => ({ allowed: false, waste_bytes: 0, upload_kbps: kbps, role: 'full' as const, battery: false });
    const bounded = viewer({ line: fast, deps: { ahead } });
    await run(1_000);
    await audience(scene, 6);
    await run(20_000);
    fine(viewers);
    const { direct } = bounded.engine.snapshot().totals.uploaded;
    expect(direct).toBeGreaterThan(0);
    expect(direct).toBeLessThan((kbps / 8) * 27_000 * 1.05);
  });

  it('leaves a stream for another rendition of it, and parts for segments', async () => {
    const scene = setUp();
    const { viewers, high, broadcast, run } = scene;
    await audience(scene, 4);
    await run(10_000);
    const [first] = viewers;
    first!.playing = high;
    await run(10_000);
    // None but the seed has it.
    expect(share([first!], first!.results.length - 10)).toMatchObject({ origin: 0, seed: 1 });
    first!.playing = broadcast;
    await run(10_000);
    expect(share([first!], first!.results.length - 10).origin).toBeLessThan(0.1);
    first!.segments = true;
    await run(5_000);
    const { totals } = first!.engine.snapshot();
    await run(5_000);
    const later = first!.engine.snapshot().totals;
    expect(later.bytes.seed + later.bytes.peer).toBe(totals.bytes.seed + totals.bytes.peer);
    fine(viewers);
  });

  it('asks the origin for whole parts until it has measured the line', async () => {
    const scene = setUp();
    const { viewers, viewer, broadcast, run } = scene;
    await audience(scene, 3);
    const chooser = viewer({ adaptive: true });
    await run(3_000);
    expect(broadcast.wholes.get(chooser.id)).toBeGreaterThanOrEqual(2);
    // 20 Mbit/s.
    const estimate = chooser.engine.capacity()!;
    expect(estimate).toBeGreaterThan(12e6);
    expect(estimate).toBeLessThan(25e6);
    await run(15_000);
    expect(share([chooser], 15).origin).toBeLessThan(0.1);
    fine(viewers);
  });

  it('takes of peers what an origin that fails was to be measured by', async () => {
    const scene = setUp();
    const { viewers, viewer, broadcast, world, run } = scene;
    await audience(scene, 3);
    const chooser = viewer({ adaptive: true });
    // Nothing is long enough.
    chooser.line.estimate = () => undefined;
    await run(5_000);
    const fetcher = broadcast.fetcher.bind(broadcast);
    broadcast.fetcher = (node, name) =>
      node === chooser.id
        ? () => new Promise((_, reject) => world.setTimer(() => reject(new Error('503')), 20))
        : fetcher(node, name);
    await run(15_000);
    fine(viewers);
    expect(share([chooser], 15).origin).toBe(0);
  });

  it('takes pieces of an origin without ranges by whole parts', async () => {
    const scene = setUp();
    const { viewers, broadcast, run } = scene;
    broadcast.rangeless = true;
    await audience(scene, 4);
    await run(15_000);
    fine(viewers);
    expect(share(viewers, 20).peer).toBeGreaterThan(0.3);
  });

  it('stays with an origin that contradicts what was signed', async () => {
    const scene = setUp();
    const { viewers, viewer, broadcast, run } = scene;
    await audience(scene, 3);
    const fetcher = broadcast.fetcher.bind(broadcast);
    const other = viewer();
    broadcast.fetcher = (node, name) => async (signal, onProgress, range) => {
      const got = await fetcher(node, name)(signal, onProgress, range);
      if (node === other.id) new Uint8Array(got.data)[0]! ^= 1;
      return got;
    };
    await run(20_000);
    const { totals, off } = other.engine.snapshot();
    // Parts of both kinds are whole ones of the origin, and after three in a row peers deliver nothing.
    expect(totals.contradictions).toBeGreaterThanOrEqual(1);
    expect(off === 'policy' || totals.contradictions < 3).toBe(true);
    fine(viewers.slice(0, 3));
    expect(other.unlinked).toEqual([]);
  });

  it('drops a seed whose certificates are forged', async () => {
    const scene = setUp();
    const { viewers, seed, run } = scene;
    await audience(scene, 3);
    await run(5_000);
    seed!.forges = true;
    await run(10_000);
    fine(viewers);
    for (const v of viewers)
      expect(v.unlinked).toMatchObject([{ peer: seedId, reason: 'protocol-error', banned: true }]);
  });

  it('takes back a request, and lets go of everything when it stops', async () => {
    const scene = setUp();
    const { viewers, seed, world, run } = scene;
    await audience(scene, 3);
    await run(5_000);
    const [first] = viewers;
    // A part is published each half second, and asked for then.
    for (let ms = 0; ms < 1_000 && !first!.loading; ms++) await run(1);
    first!.abort();
    await run(100);
    expect(first!.errors.map((e) => (e as Error).message)).toEqual(['aborted']);
    for (const v of viewers) v.stop();
    seed!.stop();
    await run(15_000);
    expect(viewers.flatMap((v) => v.engine.snapshot().peers)).toEqual([]);
    expect(world.pending).toBe(0);
  });
});
