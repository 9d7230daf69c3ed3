import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { createBackground } from '../background/background.ts';
import { Sender } from '../background/sender.ts';
import { join, Line, Store, Time, Wire } from '../testing/line.ts';
import { Within } from './within.ts';

/** A host on 5 Mbit/s and 60 ms: the part of the line that it takes once it has found it, and the queue in the mean, ms. */
const alone = (controller?: Within) => {
  const time = new Time();
  const line = new Line(time, 625_000);
  const wire = new Wire(line, 60);
  const host = (sender?: Sender) =>
    createBackground({
      clock: time,
      alarm: time.alarm(),
      soon: time.soon,
      ...(sender && { sender }),
    });
  const sender = new Sender();
  if (controller) sender.host.controller = controller;
  join(host(sender), host(), wire, new Store(1e12));
  time.pass(5_000);
  const before = wire.bytes;
  let queue = 0;
  for (let i = 0; i < 1_000; i++) {
    time.pass(10);
    queue += Math.max(0, line.free - time.now()) / 1_000;
  }
  return { share: (wire.bytes - before) / 10 / 625_000, queue, sender };
};

it('a host within bounds finds the line, and makes a shorter queue than one without', () => {
  const plain = alone();
  const within = alone(new Within(7_000, 10_000));
  expect(within.share).toBeGreaterThan(0.9);
  expect(within.queue).toBeLessThan(8); // 5.4
  expect(plain.queue).toBeGreaterThan(within.queue + 5); // 16.4
});

it('bears a fifth of the base within its bounds, and no more than the target', () => {
  const signal = { now: 1, acked: 1200, queuing: 0, rtt: 50_000, limited: true, parts: 1 };
  /** In slow start the window grows until three quarters of the target are seen: the least queue that ends it. */
  const borne = (base: number, target: number) => {
    for (let queuing = 0; ; queuing += 100) {
      const c = new Within(7_000, 10_000);
      c.onAck({ ...signal, base, target, queuing });
      if (c.state !== 'slow-start') return (queuing * 4) / 3;
    }
  };
  for (const [base, target, want] of [
    [10_000, 60_000, 7_000],
    [42_000, 60_000, 8_400],
    [200_000, 60_000, 10_000],
    [200_000, 5_000, 5_000],
  ] as const) {
    expect(Math.abs(borne(base, target) - want)).toBeLessThanOrEqual(300);
  }
});

interface Case {
  name: string;
  why: string;
  /** Moment, acked, q, T, base, RTT, limited; then state, window, slowdowns. */
  steps: number[][];
}
const file = new URL('../../../../../spec/vectors/gives-way.json', import.meta.url);
const { cases } = JSON.parse(readFileSync(file, 'utf8')) as { cases: Case[] };
type Six = [number, number, number, number, number, number];
const states = ['slow-start', 'avoidance', 'slowdown', 'ramp'];

it.each(cases)('$name', ({ why, steps }) => {
  const c = new Within(7_000, 10_000);
  for (const [i, step] of steps.entries()) {
    const [now, acked, queuing, target, base, rtt, limited] = step.slice(0, 7) as [number, ...Six];
    c.onAck({ now, acked, queuing, target, base, rtt, limited: limited === 1, parts: 1 });
    expect([states.indexOf(c.state), c.window, c.slowdowns], `${why} Step ${i}`).toEqual(step.slice(7));
  }
});
