/**
 * Twelve pages of a low-latency stream of 0.96 Mbit/s in virtual time: `npx vitest bench --run lowlatency` (docs/experiments/parts.md).
 * It prints figures of three traces, which differ in when pages come and which line each has; the rates that vitest prints mean nothing
 * here. Each audience plays beside a seed, and without one where a packager signs the parts: `certificates` are loads of a packager's for
 * each part, by all pages together.
 */

import { bench } from 'vitest';
import { Signer } from './film.ts';
import { home, quick, setUp, share, slow, wasted } from './partscene.ts';
import { signer } from './scene.ts';
import type { Line } from './world.ts';

const audiences: Record<string, Line[]> = {
  'all at 20/5 Mbit/s': Array<Line>(12).fill(home),
  'four at 5/1, five at 20/5, three at 100/40': [
    ...Array(4).fill(slow),
    ...Array(5).fill(home),
    ...Array(3).fill(quick),
  ],
  'four at 5/1, eight at 20/5': [...Array(4).fill(slow), ...Array(8).fill(home)],
};

/** Numbers in [0, 1) that a trace decides. */
const random = (trace: number) => {
  let state = trace;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
};

const packager = new Signer(2);

const play = async ({ lines, packaged, partMs }: Omit<(typeof scenes)[0], 'name'>, trace: number) => {
  const draw = random(trace);
  const shuffled = lines.map((line) => ({ line, at: draw() })).sort((a, b) => a.at - b.at);
  const { viewers, viewer, run, broadcast } = setUp({ seed: !packaged, partMs });
  if (packaged) broadcast.packager = { signer: packager, lateMs: () => 0 };
  const began = broadcast.latest();
  for (const { line } of shuffled) {
    const { engine } = viewer({ line });
    if (packaged) engine.setKeys([signer.verifyKey, packager.verifyKey]);
    await run(500 + 1_000 * draw());
  }
  await run(45_000);
  const sum = (of: (v: (typeof viewers)[0]) => number) => viewers.reduce((n, v) => n + of(v), 0);
  const stalls = sum((v) => v.stalls);
  const lost = sum((v) => v.engine.snapshot().totals.parts!.lost);
  for (const v of viewers) v.stop();
  const loads = [...broadcast.certificates.values()].reduce((n, c) => n + c.asked, 0);
  const certificates = loads / (broadcast.latest() - began);
  return { ...share(viewers), wasted: wasted(viewers), stalls, lost, certificates };
};

const scenes = Object.entries(audiences).flatMap(([name, lines]) => [
  { name, lines, packaged: false, partMs: 500 },
  { name: `${name}; parts of 200 ms`, lines, packaged: false, partMs: 200 },
  { name: `${name}; no seed, a packager signs`, lines, packaged: true, partMs: 500 },
]);

for (const { name, ...scene } of scenes) {
  bench(
    name,
    async () => {
      const runs: Awaited<ReturnType<typeof play>>[] = [];
      for (const trace of [1, 2, 3]) runs.push(await play(scene, trace));
      const figure = (of: keyof (typeof runs)[0]) => {
        const [low, mid, high] = runs.map((r) => r[of]).sort((a, b) => a - b) as [number, number, number];
        return `${of} ${mid.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`;
      };
      console.log(
        `${name}: ${(['peer', 'seed', 'origin', 'wasted', 'stalls', 'lost', 'certificates'] as const).map(figure).join(', ')}`,
      );
    },
    { iterations: 1, time: 0, warmupIterations: 0, warmupTime: 0 },
  );
}
