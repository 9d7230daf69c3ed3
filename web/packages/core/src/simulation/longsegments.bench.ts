/**
 * Six pages of low-latency DASH with long segments in virtual time: `npx vitest bench --run longsegments` (docs/experiments/parts.md).
 * It prints figures of three traces; the rates that vitest prints mean nothing here. `late` is how long after its publication the player has
 * a chunk, the 99th percentile, ms, less that of a page alone.
 */

import { bench } from 'vitest';
import { ChunkBroadcast, ChunkViewer } from './chunks.ts';
import { gather, newNetwork, quick, seedId, share, wasted } from './partscene.ts';
import { PartSeed } from './partseed.ts';
import { signer } from './scene.ts';
import type { Line } from './world.ts';

const lines = { '100/40': quick, '1000/100': { up: 12_500_000, down: 125_000_000 } };
const chunkMs = 500;
const pages = 6;

/** Numbers in [0, 1) that a trace decides. */
const random = (trace: number) => {
  let state = trace;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
};

interface Scene {
  mbps: number;
  seconds: number;
  line: Line;
  /** The longest segment that the seed reads, MiB. */
  reads: number;
}

const play = async ({ mbps, seconds, line, reads }: Scene, trace: number, count: number) => {
  const draw = random(trace);
  const { network } = newNetwork();
  network.addNode(seedId, { up: 125_000_000, down: 125_000_000 });
  const broadcast = new ChunkBroadcast(network, (seconds * 1000) / chunkMs, mbps * seconds * 125_000, seconds * 1000);
  const seed = new PartSeed(seedId, network, signer, [broadcast]);
  seed.reads = reads * 2 ** 20;
  const { viewers, viewer, run } = gather(
    network,
    count > 1 ? [seed] : [],
    (own, { deps }) => new ChunkViewer(own, network, broadcast, signer, deps),
  );
  for (let i = 0; i < count; i++) {
    viewer({ line });
    await run(500 + 1_000 * draw());
  }
  await run(24_000);
  const late = viewers.flatMap((v) => v.late.slice(20)).sort((a, b) => a - b);
  const sum = (of: (v: ChunkViewer) => number) => viewers.reduce((n, v) => n + of(v), 0);
  const figures = {
    ...share(viewers, 3),
    wasted: wasted(viewers),
    stalls: sum((v) => v.stalls),
    wrong: sum((v) => v.wrong + v.errors.length + v.unlinked.length),
    late: late[Math.floor(late.length * 0.99)] ?? 0,
  };
  for (const v of viewers) v.stop();
  seed.stop();
  return figures;
};

/** Mbit/s, seconds of a segment, line, and what the seed reads of one, MiB: 3 is what it read before. */
const scenes: [number, number, keyof typeof lines, number][] = [
  [8, 4, '100/40', 3],
  [8, 4, '100/40', 8],
  [15, 2, '100/40', 8],
  [25, 2, '100/40', 8],
  [25, 2, '1000/100', 8],
  [25, 4, '100/40', 8],
  [25, 4, '100/40', 0],
];

for (const [mbps, seconds, line, reads] of scenes)
  bench(
    `${mbps}x${seconds}/${line}/${reads}`,
    async () => {
      const scene = { mbps, seconds, line: lines[line], reads };
      const alone = await play(scene, 1, 1);
      const runs: Awaited<ReturnType<typeof play>>[] = [];
      for (const trace of [1, 2, 3]) runs.push(await play(scene, trace, pages));
      for (const r of runs) r.late -= alone.late;
      const figure = (of: keyof (typeof runs)[0]) => {
        const [low, mid, high] = runs.map((r) => r[of]).sort((a, b) => a - b) as [number, number, number];
        return `${of} ${mid.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`;
      };
      const figures = (['peer', 'seed', 'origin', 'wasted', 'stalls', 'wrong', 'late'] as const).map(figure);
      console.log(`${mbps}x${seconds}/${line}/${reads}: ${figures.join(', ')}; alone ${alone.stalls} stalls`);
    },
    { iterations: 1, time: 0, warmupIterations: 0, warmupTime: 0 },
  );
