/** Pages that play low-latency DASH, and share its chunks. */
import { describe, expect, it, vi } from 'vitest';
import type { PeerLink } from '../ports.ts';
import { ChunkBroadcast, ChunkViewer } from './chunks.ts';
import { home, type Joining, seedId } from './partscene.ts';
import { PartSeed } from './partseed.ts';
import { fast, signer } from './scene.ts';
import { Network, type SimLink, World } from './world.ts';

// Virtual time costs real time on a busy machine.
vi.setConfig({ testTimeout: 300_000 });

const setUp = () => {
  const world = new World();
  const network = new Network(world);
  network.addNode('origin', { up: 125_000_000, down: 125_000_000 });
  network.addNode(seedId, fast);
  const broadcast = new ChunkBroadcast(network);
  const seed = new PartSeed(seedId, network, signer, [broadcast]);
  const viewers: ChunkViewer[] = [];
  const meddling = new Map<string, (link: SimLink) => void>();
  const viewer = ({ line = home, deps, adaptive = false, meddle }: Joining = {}) => {
    const own = (viewers.length + 1).toString(16).padStart(2, '0').repeat(16);
    network.addNode(own, line);
    const v = new ChunkViewer(own, network, broadcast, signer, deps);
    v.adaptive = adaptive;
    if (meddle) meddling.set(own, meddle);
    const before = [...viewers];
    viewers.push(v);
    world.setTimer(() => {
      for (const other of [seed, ...before]) {
        const role = other === seed ? 'seed' : 'viewer';
        const [mine, theirs] = network.link({ id: own, role: 'viewer' }, { id: other.id, role });
        meddle?.(mine);
        meddling.get(other.id)?.(theirs);
        v.addLink(mine);
        other.addLink(theirs as PeerLink);
      }
    }, 400);
    v.play();
    return v;
  };
  const run = (ms: number) => world.runUntil(world.now() + ms);
  const audience = async (n: number, joining: Joining = {}) => {
    for (let i = 0; i < n; i++) {
      viewer(joining);
      await run(1_000);
    }
  };
  return { world, network, broadcast, seed, viewers, viewer, run, audience };
};

const share = (viewers: ChunkViewer[], from = 0) => {
  const sum = { origin: 0, seed: 0, peer: 0 };
  for (const v of viewers) for (const k of ['origin', 'seed', 'peer'] as const) sum[k] += v.bytes(from)[k];
  const all = sum.origin + sum.seed + sum.peer;
  return { origin: sum.origin / all, seed: sum.seed / all, peer: sum.peer / all };
};

const fine = (viewers: ChunkViewer[]) => {
  for (const v of viewers) {
    expect(v.errors).toEqual([]);
    expect({ wrong: v.wrong, stalls: v.stalls }).toEqual({ wrong: 0, stalls: 0 });
  }
};

describe('twelve pages of low-latency DASH', () => {
  it('share its chunks', async () => {
    const { viewers, run, audience } = setUp();
    await audience(12);
    await run(45_000);
    console.log(
      share(viewers),
      share(viewers, 5),
      viewers.map((v) => [v.results.length, v.stalls, v.wrong, v.errors.length, Math.max(...v.late.slice(20))]),
      viewers.map((v) => v.results.map((r) => r.source[0]).join('')),
      viewers.map((v) =>
        JSON.stringify([
          v.engine.snapshot().totals.parts,
          v.engine.snapshot().totals.wasted_bytes,
          v.unlinked,
          v.engine.snapshot().counters,
        ]),
      ),
    );
    fine(viewers);
  });
});
