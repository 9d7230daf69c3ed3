/** Pages that play low-latency DASH, and share its chunks. */
import { describe, expect, it, vi } from 'vitest';
import { ChunkBroadcast, ChunkViewer } from './chunks.ts';
import { Signer } from './film.ts';
import {
  audience as come,
  fine,
  gather,
  type Joining,
  newNetwork,
  pollute,
  quick,
  seedId,
  share,
  wasted,
} from './partscene.ts';
import { PartSeed } from './partseed.ts';
import { fast, signer } from './scene.ts';

// Virtual time costs real time on a busy machine.
vi.setConfig({ testTimeout: 300_000 });

const setUp = (...how: [chunks?: number, bytes?: number, segmentMs?: number]) => {
  const { network } = newNetwork();
  const broadcast = new ChunkBroadcast(network, ...how);
  const seed = new PartSeed(seedId, network, signer, [broadcast]);
  const seeds = [seed];
  const { viewers, viewer, run } = gather(network, seeds, (own, { deps, behind = 0 }) =>
    Object.assign(new ChunkViewer(own, network, broadcast, signer, deps), { behind }),
  );
  const audience = (n: number, joining?: Joining) => come({ viewer, run }, n, joining);
  return { network, broadcast, seed, seeds, viewers, viewer, run, audience };
};

/** How late chunks came, ms behind their publication, but for so much in a thousand. */
const lateness = (viewers: ChunkViewer[], from = 20) => {
  const late = viewers.flatMap((v) => v.late.slice(from)).sort((a, b) => a - b);
  return late[Math.floor(late.length * 0.99)]!;
};

describe('twelve pages of low-latency DASH', () => {
  it('share its chunks', async () => {
    const { viewers, run, audience, broadcast } = setUp();
    await audience(12);
    await run(45_000);
    fine(viewers);
    expect(share(viewers, 4).peer).toBeGreaterThan(0.75);
    expect(share(viewers, 4).origin).toBeLessThan(0.05);
    // A chunk plays 500 ms, a page is two behind. The deepest tree has six hops.
    expect(lateness(viewers)).toBeLessThan(600);
    expect(wasted(viewers)).toBeLessThan(0.05);
    for (const v of viewers) {
      const { totals } = v.engine.snapshot();
      expect(totals).toMatchObject({ rejected_bytes: 0, contradictions: 0 });
      const { seed, peer } = totals.parts!;
      expect({ seed, peer }).toEqual({ seed: totals.segments.seed, peer: totals.segments.peer });
      expect(seed + peer).toBeGreaterThan(60);
      // A segment of the origin is asked for once.
      expect(broadcast.asked.get(v.id)).toBeLessThan(8);
      expect(v.unlinked).toEqual([]);
    }
  });

  it.each([2, 3, 10, 50])('share them where a segment has %i', async (chunks) => {
    const { viewers, run, audience } = setUp(chunks);
    await audience(6);
    await run(30_000);
    fine(viewers);
    expect(share(viewers, 5).origin).toBeLessThan(0.05);
    // A chunk that plays for 1 s is waited for longer.
    expect(lateness(viewers, 5 * chunks)).toBeLessThan(chunks > 2 ? 700 : 850);
    expect(viewers.flatMap((v) => v.unlinked)).toEqual([]);
  });

  // Sound: a chunk is one piece, so each stripe has one in four.
  it('share them where a chunk is a piece', async () => {
    const { viewers, run, audience } = setUp(4, 16_000);
    await audience(6);
    await run(40_000);
    fine(viewers);
    expect(share(viewers, 8).origin).toBeLessThan(0.05);
    expect(viewers.flatMap((v) => v.unlinked)).toEqual([]);
  });

  // 8 Mbit/s: the origin is quicker than the certificate of the last chunk.
  it('share long segments, and learn how many chunks one has', async () => {
    const { viewers, viewer, run } = setUp(8, 4_000_000, 4_000);
    for (let i = 0; i < 4; i++) {
      viewer({ line: quick });
      await run(736);
    }
    await run(24_000);
    fine(viewers);
    expect(share(viewers, 4).origin).toBeLessThan(0.05);
    expect(lateness(viewers, 40)).toBeLessThan(600);
    expect(wasted(viewers)).toBeLessThan(0.1);
  });

  it.each([1_920, 2_002])('share them where a timeline began in 1970, and a segment plays %i ms', async (segmentMs) => {
    const { viewers, broadcast, run, audience } = setUp(4, 240_000, segmentMs);
    broadcast.epoch = 4 * Math.floor(1_780_000_000_000 / segmentMs / 4);
    await audience(4);
    await run(20_000);
    fine(viewers);
    expect(share(viewers, 5).origin).toBeLessThan(0.1);
    expect(viewers.flatMap((v) => v.unlinked)).toEqual([]);
  });

  it('wait for a packager that is late, and leave few parents for it', async () => {
    const { viewers, broadcast, run, audience } = setUp();
    await audience(6);
    await run(12_000);
    const lostBy = () => viewers.reduce((n, v) => n + v.engine.snapshot().totals.parts!.lost, 0);
    const lost = lostBy();
    broadcast.lateMs = (n) => (n % 7 === 3 ? 400 : 0);
    await run(30_000);
    fine(viewers);
    expect(share(viewers, 6).origin).toBeLessThan(0.1);
    expect(lostBy() - lost).toBeLessThan(10);
  });

  it.each([false, true])('get no byte beyond what they have; the origin sends all at once: %s', async (mute) => {
    const { viewers, broadcast, run, audience } = setUp();
    broadcast.bend = 0.9;
    await audience(5);
    for (const v of viewers) v.mute = mute;
    broadcast.lateMs = (n) => (n % 5 === 3 ? 900 : 0);
    await run(40_000);
    expect(share(viewers).origin).toBeGreaterThan(0.2);
    for (const v of viewers) {
      expect({ errors: v.errors, wrong: v.wrong }).toEqual({ errors: [], wrong: 0 });
      expect(v.engine.snapshot().totals.bytes.origin).toBe(v.bytes().origin);
    }
  });

  it('count no byte twice where the origin sends less than they have', async () => {
    const { viewers, broadcast, run, audience } = setUp();
    await audience(5);
    broadcast.lateMs = (n) => (n % 4 === 2 ? 900 : 0);
    broadcast.most = 1_000;
    await run(10_000);
    for (const v of viewers) {
      expect(v.results.at(-1)!.data.byteLength).toBe(1_000);
      for (const r of v.results) expect(r.bytes.origin).toBeGreaterThanOrEqual(0);
      expect(v.engine.snapshot().totals.bytes.origin).toBe(v.bytes().origin);
    }
  });

  // Each seed signs for itself, so a page is told other certificates by its parents than by its seed.
  it('share those of two seeds', async () => {
    const { network, broadcast, seeds, viewers, viewer, run } = setUp();
    const [other, id] = [new Signer(), 'e0'.repeat(16)];
    network.addNode(id, fast);
    seeds.push(new PartSeed(id, network, other, [broadcast]));
    for (let i = 0; i < 8; i++) {
      viewer().engine.setKeys([signer.verifyKey, other.verifyKey]);
      await run(1_000);
    }
    await run(30_000);
    fine(viewers);
    expect(share(viewers, 5).origin).toBeLessThan(0.05);
    expect(share(viewers, 5).peer).toBeGreaterThan(0.5);
    expect(viewers.flatMap((v) => v.unlinked)).toEqual([]);
  });

  it('go on with the origin when the seed dies without a word', async () => {
    const { viewers, network, run, audience } = setUp();
    await audience(12);
    await run(15_000);
    network.moves(seedId);
    const before = viewers.map((v) => v.results.length);
    await run(20_000);
    fine(viewers);
    for (const [i, v] of viewers.entries()) expect(v.results.length).toBeGreaterThanOrEqual(before[i]! + 9);
    for (const r of viewers.flatMap((v) => v.results.slice(-3))) expect(r.source).toBe('origin');
  });

  it.each([
    ['within a chunk', 100_000],
    ['at the end of one', 120_000],
  ])('ask the origin where the end that was told is %s', async (_, length) => {
    const { viewers, broadcast, run, audience } = setUp();
    await audience(4);
    await run(8_000);
    broadcast.endsWith = ({ sequence, index }) =>
      index === 1 ? { name: broadcast.key(sequence), data: new Uint8Array(length) } : undefined;
    const before = viewers.map((v) => v.results.length);
    await run(10_000);
    for (const [i, v] of viewers.entries()) {
      expect([v.errors, v.wrong, v.engine.snapshot().counters.errors]).toEqual([[], 0, undefined]);
      expect(v.results.length).toBeGreaterThanOrEqual(before[i]! + 4);
    }
  });

  it.each(['dead', 'broken'] as const)('play on by peers where the origin is %s for all of them', async (how) => {
    const { viewers, broadcast, run, audience } = setUp();
    await audience(6);
    await run(15_000);
    broadcast[how] = true; // the seed has it by another way
    const before = viewers.map((v) => v.results.length);
    await run(20_000);
    fine(viewers);
    for (const v of viewers) expect(v.engine.snapshot().totals.bytes.origin).toBe(v.bytes().origin);
    for (const [i, v] of viewers.entries()) expect(v.results.length).toBeGreaterThanOrEqual(before[i]! + 9);
  });

  it('hear of an origin that fails where peers do not bring the rest either', async () => {
    const { viewers, broadcast, network, run, audience } = setUp();
    await audience(3);
    await run(15_000);
    broadcast.broken = true;
    network.moves(seedId);
    await run(8_000);
    for (const v of viewers) expect(v.errors).toEqual([new Error('503')]);
  });

  it('drop one that sends wrong bytes at the first piece, and pass none on', async () => {
    const { viewers, viewer, run, audience } = setUp();
    const polluter = viewer({ line: fast, meddle: pollute });
    await run(6_000);
    await audience(11);
    await run(30_000);
    fine(viewers);
    const banned = viewers.slice(1).flatMap((v) => v.unlinked);
    expect(banned.length).toBeGreaterThan(0);
    for (const u of banned) expect(u).toMatchObject({ peer: polluter.id, reason: 'bad-piece', banned: true });
  });

  it('take another version of a chunk from the origin, and blame no peer for it', async () => {
    const { viewers, viewer, broadcast, run, audience } = setUp();
    await audience(3);
    const other = viewer();
    const reader = broadcast.reader.bind(broadcast);
    broadcast.reader = (node, sequence, take) => {
      if (node !== other.id) return reader(node, sequence, take);
      const flipped = (bytes: Uint8Array) => {
        bytes[0]! ^= 1;
        take(bytes);
      };
      return reader(node, sequence, flipped);
    };
    await run(20_000);
    fine(viewers.slice(0, 3));
    expect(other.unlinked).toEqual([]);
  });

  it('drop a seed whose certificates are forged', async () => {
    const { viewers, seed, run, audience } = setUp();
    await audience(3);
    await run(8_000);
    seed.forges = true;
    await run(10_000);
    fine(viewers);
    for (const v of viewers)
      expect(v.unlinked).toMatchObject([{ peer: seedId, reason: 'protocol-error', banned: true }]);
  });
});

describe('a page of low-latency DASH', () => {
  it('that does not upload takes chunks, and no children', async () => {
    const { viewers, viewer, broadcast, run, audience } = setUp();
    broadcast.bend = 0.9;
    await audience(3);
    const leech = viewer({ deps: { uploads: () => false } });
    await run(20_000);
    fine(viewers);
    expect(leech.engine.snapshot().totals.uploaded).toEqual({ direct: 0, relay: 0 });
    expect(share([leech], 5).origin).toBe(0);
  });

  it('plays by the origin where the script of the node does not come', async () => {
    const { viewers, viewer, run, audience } = setUp();
    await audience(3);
    const missing = viewer({ deps: { loadSeldom: () => Promise.reject(new Error('404')) } });
    await run(9_000);
    fine(viewers);
    expect(share([missing]).origin).toBe(1);
  });

  it('measures its line by segments of the origin first', async () => {
    const { viewers, viewer, broadcast, run, audience } = setUp();
    broadcast.bend = 0.9;
    await audience(3);
    const chooser = viewer({ adaptive: true });
    await run(20_000);
    fine(viewers);
    expect(chooser.results[0]!.source).toBe('origin');
    expect(chooser.engine.capacity()).toBeGreaterThan(0);
    expect(share([chooser], 5).origin).toBeLessThan(0.2);
  });

  it('is charged nothing while its player is paused, and shares again after that', async () => {
    const { viewers, run, audience } = setUp();
    await audience(4);
    await run(10_000);
    const [first] = viewers;
    first!.paused = true;
    await run(30_000);
    expect(viewers.flatMap((v) => v.unlinked)).toEqual([]);
    first!.resume();
    await run(15_000);
    fine(viewers.slice(1));
    expect(share([first!], first!.results.length - 3).origin).toBe(0);
    expect(viewers.flatMap((v) => v.unlinked)).toEqual([]);
  });

  it.each([
    [5, 4],
    [1, 50],
  ])('bans no peer, and takes nothing of chunks, %i segments of %i chunks behind the edge', async (behind, chunks) => {
    const { viewer, run, audience } = setUp(chunks);
    await audience(3);
    const late = viewer({ behind });
    await run(40_000);
    expect(late.unlinked).toEqual([]);
    expect({ errors: late.errors, wrong: late.wrong }).toEqual({ errors: [], wrong: 0 });
    expect(late.results.length).toBeGreaterThan(18);
    expect(late.engine.snapshot().totals.wasted_bytes).toBe(0);
  });

  it('bans no peer behind a segment that ends with its period', async () => {
    const { viewers, viewer, broadcast, run, audience } = setUp(4, 960_000);
    await audience(3, { line: fast });
    const last = viewer({ line: fast });
    await run(10_000);
    const cut = Math.floor(broadcast.latest() / broadcast.perSegment) + 2;
    last.lastsMs = (sequence) => (sequence === cut ? 0.4 : 1) * broadcast.segmentMs;
    await run(20_000);
    fine(viewers);
    expect(last.unlinked).toEqual([]);
  });

  it.each(['of the same segment', 'of the next one'])('loads for two players at once, the second %s', async (which) => {
    const { viewers, broadcast, run, audience } = setUp();
    await audience(4);
    await run(10_000);
    const [first] = viewers;
    const at = Math.floor(broadcast.latest() / broadcast.perSegment);
    const sequence = which === 'of the same segment' ? at : at + 1;
    const outcome = first!.ask(sequence).result.then(
      (r) => Buffer.from(r.data).equals(broadcast.segment(sequence)),
      (error) => error,
    );
    await run(10_000);
    expect(await Promise.race([outcome, 'nothing'])).toBe(true);
    fine(viewers);
    expect(first!.unlinked).toEqual([]);
  });

  it('loads for two players of one track that ask for other renditions at once', async () => {
    const { viewers, network, broadcast, run, audience } = setUp();
    await audience(4);
    await run(10_000);
    const [first] = viewers;
    const other = new ChunkBroadcast(network);
    Object.assign(other, { rendition: 'high', beganMs: Reflect.get(broadcast, 'beganMs') });
    const at = Math.floor(broadcast.latest() / broadcast.perSegment) + 5;
    const ask = (playing: ChunkBroadcast) => {
      first!.playing = playing;
      return first!.ask(at);
    };
    // What an ID is made of is known then, so both are asked for in one go.
    const known = ask(other);
    known.result.catch(() => {});
    known.abort();
    first!.playing = broadcast;
    await run(10_000);
    const right = (playing: ChunkBroadcast) =>
      ask(playing).result.then(
        (r) => Buffer.from(r.data).equals(playing.segment(at)),
        (error) => error,
      );
    const outcomes = Promise.all([right(broadcast), right(other)]);
    await run(10_000);
    expect(await Promise.race([outcomes, 'nothing'])).toEqual([true, true]);
    fine(viewers);
  });

  it('takes back a request, and lets go of everything when it stops', async () => {
    const { viewers, run, audience } = setUp();
    await audience(3);
    await run(8_000);
    const [first] = viewers;
    first!.abort();
    for (const v of viewers) v.stop();
    await run(15_000);
    const errors = viewers.flatMap((v) => v.errors).map((e) => (e as Error).message);
    expect(errors).toContain('aborted');
    expect(new Set(errors)).toEqual(new Set(['aborted']));
  });
});
