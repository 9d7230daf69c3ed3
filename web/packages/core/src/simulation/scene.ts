import type { EngineDeps } from '../enginedeps.ts';
import { join, type Other, Seed, Viewer } from './actors.ts';
import type { Film } from './film.ts';
import { Signer } from './film.ts';
import { type Line, Network, World } from './world.ts';

export const fast: Line = { up: 12_500_000, down: 12_500_000 };
export const id = (n: number) => n.toString(16).repeat(32).slice(0, 32);
export const signer = new Signer();

/** A world with an origin, a seed and viewers that join when the test says so. */
export const setUp = (film: Film, line: Line = fast, delayMs?: number) => {
  const world = new World();
  const network = new Network(world, delayMs);
  network.addNode('origin', { up: 125_000_000, down: 125_000_000 });
  network.addNode(id(15), fast);
  const seed = new Seed(id(15), network, film, signer);
  const viewers: Viewer[] = [];
  /** A viewer that joins now and is linked to all others, unless said otherwise. */
  const viewer = (
    others: Other[] = [seed, ...viewers],
    deps: Partial<EngineDeps> = {},
    adaptive = false,
    begin = (v: Viewer) => v.play(),
  ) => {
    const n = viewers.length + 1;
    network.addNode(id(n), line);
    const v = new Viewer(id(n), network, film, signer, deps);
    v.adaptive = adaptive;
    join(network, v, others);
    begin(v);
    viewers.push(v);
    return v;
  };
  const run = (ms: number) => world.runUntil(world.now() + ms);
  return { world, network, seed, viewers, viewer, run };
};

/** What came of it, over all viewers. */
export const figures = (viewers: Viewer[], film: Film) => {
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
    // The engine's own it counts, and goes on.
    errors: viewers.reduce((n, v) => n + v.errors.length + (v.engine.snapshot().counters.errors ?? 0), 0),
  };
};

export const fine = { stalls: 0, wrong: 0, errors: 0 };
