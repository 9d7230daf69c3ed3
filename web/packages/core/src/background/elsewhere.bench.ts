/**
 * Pages with a busy thread, in virtual time, on paths and tasks that no constant was chosen by
 * (docs/experiments/ablation-transport.md): `npx vitest bench --run elsewhere`. It prints figures of three seeds; the rates that
 * vitest prints mean nothing here.
 */

import { bench } from 'vitest';
import { dataHeader } from '../protocol/peer.ts';
import { join, Line, Store, Thread, Time, tasks, Wire } from '../testing/line.ts';
import { createBackground } from './background.ts';
import { backgroundHeader, backgroundType } from './message.ts';

interface Scene {
  mbit: number;
  rtt: number;
  /** Least and most that the page's thread is busy at a time, and how long it is free in between, ms. */
  busy: [low: number, high: number, between: number];
  /** The same of the other machine. */
  far?: [low: number, high: number, between: number];
  /** Each so many-th beat is overtaken, by 8 to 26 ms. */
  overtaken?: number;
  /** So many bytes are to be sent each half second; left out: there is always more. */
  burst?: number;
  /** Another flow has seven tenths of the line for so many seconds before it is measured. */
  crowd?: number;
  /** How long it is measured, s. */
  seconds?: number;
}

/** Gives a store so many bytes each half second, on the thread of its page. `came` hears how much payload has come in all. */
const bursts = (time: Time, page: Thread, store: Store, bytes: number, wake: () => void) => {
  const waiting: { at: number; until: number }[] = [];
  const took: number[] = [];
  let given = 0;
  const next = () => {
    given += bytes;
    waiting.push({ at: time.now(), until: given });
    page.run(() => {
      store.left += bytes;
      wake();
    });
    time.setTimer(next, 500);
  };
  next();
  return {
    took,
    came(payload: number) {
      while (waiting[0] && waiting[0].until <= payload) took.push(time.now() - waiting.shift()!.at);
    },
  };
};

/** The value below which nineteen of twenty lie. */
const p95 = (list: number[]): number => list.sort((a, b) => a - b)[Math.floor(0.95 * list.length)] ?? 0;

const play = (scene: Scene, seed: number, sends: boolean) => {
  const { mbit, rtt, busy, far, overtaken = 0, burst = 0, crowd = 0, seconds = 20 } = scene;
  const time = new Time();
  const threads = [new Thread(time), new Thread(time)] as const;
  threads[0].overtaken = (n) => (overtaken && n % overtaken === 0 ? 8 + ((n * seed) % 19) : 0);
  const line = new Line(time, mbit * 125_000);
  const wire = new Wire(line, rtt);
  const host = (thread: Thread) => createBackground({ clock: time, alarm: thread.alarm(true), soon: time.soon });
  const [from, to] = sends ? threads : [threads[1], threads[0]];
  const store = new Store(burst ? 0 : 1e12, true);
  const [lane] = join(host(from), host(to), wire, store);
  const { arrived, acked } = wire;
  let came = 0;
  let plain = 0;
  let payload = 0;
  let sent: ReturnType<typeof bursts> | undefined;
  wire.arrived = (m) =>
    to.run(() => {
      const paced = m[0] === backgroundType;
      came += m.length;
      payload += m.length - (paced ? backgroundHeader : dataHeader);
      if (paced) arrived(m);
      else plain += m.length;
      sent?.came(payload);
    });
  wire.acked = (m) => from.run(() => acked(m));
  wire.drained = () => from.run(() => lane.wake());
  time.pass(500);
  threads[0].work(tasks(seed, busy[0], busy[1]), busy[2]);
  if (far) threads[1].work(tasks(seed + 9, far[0], far[1]), far[2]);
  if (burst) sent = bursts(time, from, store, burst, () => lane.wake());
  time.pass(3_000);
  line.crowd(0.7, crowd);
  time.pass(crowd * 1000);
  [came, plain] = [0, 0];
  sent?.took.splice(0);
  const waits: number[] = [];
  for (let i = 0; i < 100 * seconds; i++) {
    time.pass(10);
    waits.push(Math.max(0, line.free - time.now()));
  }
  return {
    used: came / seconds / (mbit * 125_000),
    plain: plain / Math.max(1, came),
    'p95-ms': p95(waits),
    ...(sent && { 'burst-p95-ms': p95(sent.took) }),
  };
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
      [3, 8, 30_000],
      [12, 6, 100_000],
      [20, 3, 200_000],
      [50, 4, 500_000],
    ] as const
  ).flatMap(([mbit, rtt, burst]) =>
    (
      [
        [5, 20, 10],
        [10, 60, 40],
        [2, 8, 1],
      ] as Scene['busy'][]
    ).flatMap((busy): typeof scenes => [
      [
        `short, ${mbit} Mbit/s ${rtt} ms, busy ${busy[0]} to ${busy[1]}, a minute after another flow`,
        true,
        { mbit, rtt, busy, crowd: 10, seconds: 60 },
      ],
      [
        `short, ${mbit} Mbit/s ${rtt} ms, busy ${busy[0]} to ${busy[1]}, bursts after another flow`,
        true,
        { mbit, rtt, busy, crowd: 10, seconds: 60, burst },
      ],
    ]),
  ),
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
      const figures = Object.keys(runs[0]!).map((of) => {
        const list = runs.map((r) => (r as Record<string, number>)[of]!);
        const [low, mid, high] = list.sort((a, b) => a - b) as [number, number, number];
        return `${of} ${mid.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`;
      });
      console.log(`${name}: ${figures.join(', ')}`);
    },
    { iterations: 1, time: 0, warmupIterations: 0, warmupTime: 0 },
  );
}
