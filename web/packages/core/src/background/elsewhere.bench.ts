/**
 * Pages with a busy thread, in virtual time, on paths and tasks that no constant was chosen by
 * (docs/experiments/ablation-transport.md): `npx vitest bench --run elsewhere`. It prints figures of three seeds; the rates that
 * vitest prints mean nothing here.
 */

import { bench } from 'vitest';
import { join, Line, Store, Thread, Time, Wire } from '../testing/line.ts';
import { createBackground } from './background.ts';
import { backgroundType } from './message.ts';

/** Tasks of a thread, ms, between two bounds. */
const tasks = (seed: number, low: number, high: number): number[] => {
  let state = seed;
  return Array.from({ length: 97 }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.round(low + ((high - low) * state) / 2 ** 32);
  });
};

interface Scene {
  mbit: number;
  rtt: number;
  /** Least and most that the page's thread is busy at a time, and how long it is free in between, ms. */
  busy: [low: number, high: number, between: number];
  /** The same of the other machine. */
  far?: [low: number, high: number, between: number];
  /** Each so many-th beat is overtaken, by 8 to 26 ms. */
  overtaken?: number;
}

const play = ({ mbit, rtt, busy, far, overtaken = 0 }: Scene, seed: number, sends: boolean) => {
  const time = new Time();
  const threads = [new Thread(time), new Thread(time)] as const;
  threads[0].overtaken = (n) => (overtaken && n % overtaken === 0 ? 8 + ((n * seed) % 19) : 0);
  const line = new Line(time, mbit * 125_000);
  const wire = new Wire(line, rtt);
  const host = (thread: Thread) => createBackground({ clock: time, alarm: thread.alarm(true), soon: time.soon });
  const [from, to] = sends ? threads : [threads[1], threads[0]];
  const [lane] = join(host(from), host(to), wire, new Store(1e12, true));
  const { arrived, acked } = wire;
  let came = 0;
  let plain = 0;
  wire.arrived = (m) =>
    to.run(() => {
      came += m.length;
      if (m[0] === backgroundType) arrived(m);
      else plain += m.length;
    });
  wire.acked = (m) => from.run(() => acked(m));
  wire.drained = () => from.run(() => lane.wake());
  time.pass(500);
  threads[0].work(tasks(seed, busy[0], busy[1]), busy[2]);
  if (far) threads[1].work(tasks(seed + 9, far[0], far[1]), far[2]);
  time.pass(3_000);
  [came, plain] = [0, 0];
  const waits: number[] = [];
  for (let i = 0; i < 2_000; i++) {
    time.pass(10);
    waits.push(Math.max(0, line.free - time.now()));
  }
  waits.sort((a, b) => a - b);
  return { used: came / 20 / (mbit * 125_000), plain: plain / Math.max(1, came), 'p95-ms': waits[1_900]! };
};

const scenes: [name: string, sends: boolean, scene: Scene][] = [
  ['near, 1 Gbit/s 0.3 ms, both busy 10 to 50', true, { mbit: 1_000, rtt: 0.3, busy: [10, 50, 3], far: [10, 50, 5] }],
  ['near, 300 Mbit/s 1.5 ms, both busy 5 to 25', true, { mbit: 300, rtt: 1.5, busy: [5, 25, 3], far: [5, 25, 5] }],
  ...(
    [
      [2, 50],
      [20, 25],
    ] as const
  ).flatMap(([mbit, rtt]): typeof scenes => [
    [`late, ${mbit} Mbit/s ${rtt} ms, busy 80 to 350`, true, { mbit, rtt, busy: [80, 350, 20] }],
    [`late, ${mbit} Mbit/s ${rtt} ms, busy 30 to 120`, true, { mbit, rtt, busy: [30, 120, 60] }],
  ]),
  ...(
    [
      [3, 8],
      [12, 6],
    ] as const
  ).flatMap(([mbit, rtt]): typeof scenes => [
    [`short, ${mbit} Mbit/s ${rtt} ms, busy 5 to 20`, true, { mbit, rtt, busy: [5, 20, 10] }],
    [`short, ${mbit} Mbit/s ${rtt} ms, busy 10 to 60`, true, { mbit, rtt, busy: [10, 60, 40] }],
  ]),
  ...(
    [
      [2, 60],
      [15, 25],
      [40, 20],
    ] as const
  ).flatMap(([mbit, rtt]): typeof scenes => [
    [`beats, ${mbit} Mbit/s ${rtt} ms, busy 20 to 100`, false, { mbit, rtt, busy: [20, 100, 50] }],
    [`beats, ${mbit} Mbit/s ${rtt} ms, busy 5 to 20`, false, { mbit, rtt, busy: [5, 20, 10] }],
    [
      `beats overtaken, ${mbit} Mbit/s ${rtt} ms, busy 20 to 100`,
      false,
      { mbit, rtt, busy: [20, 100, 50], overtaken: 400 },
    ],
    [
      `beats overtaken, ${mbit} Mbit/s ${rtt} ms, busy 5 to 20`,
      false,
      { mbit, rtt, busy: [5, 20, 10], overtaken: 400 },
    ],
  ]),
];

for (const [name, sends, scene] of scenes) {
  bench(
    name,
    () => {
      const runs = [1, 2, 3].map((seed) => play(scene, seed, sends));
      const figure = (of: keyof (typeof runs)[0]) => {
        const [low, mid, high] = runs.map((r) => r[of]).sort((a, b) => a - b) as [number, number, number];
        return `${of} ${mid.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`;
      };
      console.log(`${name}: ${figure('used')}, ${figure('plain')}, ${figure('p95-ms')}`);
    },
    { iterations: 1, time: 0, warmupIterations: 0, warmupTime: 0 },
  );
}
