/** Pages of a low-latency stream: an origin, a seed, and viewers that join when the test says so. */

import { expect } from 'vitest';
import type { EngineDeps } from '../enginedeps.ts';
import type { PeerLink } from '../ports.ts';
import { pushed } from '../protocol/parts.ts';
import { Broadcast } from './broadcast.ts';
import type { EdgeViewer } from './edgeviewer.ts';
import { PartSeed } from './partseed.ts';
import { PartViewer } from './partviewer.ts';
import { fast, id, signer } from './scene.ts';
import { type Line, Network, type SimLink, World } from './world.ts';

/** 5/1, 20/5 and 100/40 Mbit/s. */
export const slow: Line = { up: 125_000, down: 625_000 };
export const home: Line = { up: 625_000, down: 2_500_000 };
export const quick: Line = { up: 5_000_000, down: 12_500_000 };
export const seedId = id(15);

export interface Joining {
  line?: Line;
  deps?: Partial<EngineDeps>;
  /** Before its links. */
  adaptive?: boolean;
  /** Has its own end of each link first. */
  meddle?(link: SimLink): void;
  at?: Broadcast;
  /** Of a stream of chunks: segments behind the edge. */
  behind?: number;
}

/** Makes a page of a link's end that flips a bit of each pushed piece. */
export const pollute = (link: SimLink): void => {
  const flip = (message: Uint8Array) => {
    if (!pushed(new DataView(message.buffer, message.byteOffset).getUint32(1))) return message;
    const wrong = message.slice();
    wrong[wrong.length - 1]! ^= 1;
    return wrong;
  };
  const send = link.sendData.bind(link);
  const behind = link.sendBackground.bind(link);
  link.sendData = (m) => send(flip(m));
  link.sendBackground = (m) => behind(flip(m));
};

/** All played through, and nothing went wrong in the engine either. */
export const fine = (viewers: EdgeViewer[]): void => {
  for (const v of viewers) {
    expect([v.errors, v.engine.snapshot().counters.errors]).toEqual([[], undefined]);
    expect({ wrong: v.wrong, stalls: v.stalls }).toEqual({ wrong: 0, stalls: 0 });
  }
};

/**
 * Viewers that join when the test says so: each is linked, after what links take, to all others and to one of the seeds, if there are any.
 */
export const gather = <V extends EdgeViewer>(
  network: Network,
  seeds: PartSeed[],
  make: (own: string, joining: Joining) => V,
) => {
  const { world } = network;
  const viewers: V[] = [];
  const meddling = new Map<string, (link: SimLink) => void>();
  const viewer = (joining: Joining = {}) => {
    const { line = home, adaptive = false, meddle } = joining;
    const own = (viewers.length + 1).toString(16).padStart(2, '0').repeat(16);
    network.addNode(own, line);
    const v = make(own, joining);
    v.adaptive = adaptive;
    if (meddle) meddling.set(own, meddle);
    const before = [...viewers];
    viewers.push(v);
    world.setTimer(() => {
      const seed = seeds[before.length % seeds.length];
      for (const other of seed ? [seed, ...before] : before) {
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
  return { viewers, viewer, run };
};

/** A network with an origin, and a node for a seed. */
export const newNetwork = () => {
  const world = new World();
  const network = new Network(world);
  network.addNode('origin', { up: 125_000_000, down: 125_000_000 });
  network.addNode(seedId, fast);
  return { world, network };
};

/** A stream, a seed, and viewers that join when the test says so. */
export const setUp = (options: { seed?: boolean; others?: Broadcast[]; partMs?: number } = {}) => {
  const { partMs = 500 } = options;
  const { world, network } = newNetwork();
  const broadcast = new Broadcast(network, 'mid', 120 * partMs, partMs);
  const high = new Broadcast(network, 'high', 110_000);
  const seed = options.seed === false ? undefined : new PartSeed(seedId, network, signer, [broadcast, high]);
  const audience = gather(
    network,
    seed ? [seed] : [],
    (own, { at = broadcast, deps }) => new PartViewer(own, network, at, signer, deps),
  );
  return { world, network, broadcast, high, seed, ...audience };
};

export type Scene = ReturnType<typeof setUp>;

/** Viewers come one a second. */
export const audience = async (
  { viewer, run }: Pick<ReturnType<typeof gather>, 'viewer' | 'run'>,
  n: number,
  joining: Joining = {},
) => {
  for (let i = 0; i < n; i++) {
    viewer(joining);
    await run(1_000);
  }
};

export const share = (viewers: EdgeViewer[], from = 0) => {
  const sum = { origin: 0, seed: 0, peer: 0 };
  for (const v of viewers) for (const k of ['origin', 'seed', 'peer'] as const) sum[k] += v.bytes(from)[k];
  const all = sum.origin + sum.seed + sum.peer;
  return { origin: sum.origin / all, seed: sum.seed / all, peer: sum.peer / all };
};

/** What pages have thrown away, of what they have played. */
export const wasted = (viewers: EdgeViewer[]) => {
  const sum = (of: (v: EdgeViewer) => number) => viewers.reduce((n, v) => n + of(v), 0);
  const played = sum((v) => v.results.reduce((n, r) => n + r.data.byteLength, 0));
  return sum((v) => v.engine.snapshot().totals.wasted_bytes) / played;
};
