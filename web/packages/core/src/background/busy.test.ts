import { expect, it } from 'vitest';
import { join, Line, Store, Thread, Time, Wire } from '../testing/line.ts';
import { createBackground } from './background.ts';

/** What a page gets of 5 Mbit/s, 40 ms, whose thread is busy in between, as a part of the line. */
const share = (tasks: number[], between: number, beats: boolean) => {
  const time = new Time();
  const thread = new Thread(time);
  const line = new Line(time, 625_000);
  const wire = new Wire(line, 40);
  const host = (alarm: Parameters<typeof createBackground>[0]['alarm']) =>
    createBackground({ clock: time, alarm, soon: time.soon, random: () => 0.5 });
  const page = host(thread.alarm(beats));
  const sender = host(time.alarm());
  const store = new Store(1e12, true);
  join(sender, page, wire, store);
  const { arrived } = wire;
  wire.arrived = (m) => thread.run(() => arrived(m));
  if (tasks.length) thread.work(tasks, between);
  time.pass(5_000);
  const before = wire.bytes;
  let queue = 0;
  for (let i = 0; i < 2_000; i++) {
    time.pass(10);
    queue = Math.max(queue, line.free - time.now());
  }
  return { share: (wire.bytes - before) / 20 / 625_000, queue, stats: sender.stats().sender, page };
};

// Tasks of a page that plays, decodes and draws on a machine with little to spare.
const tasks = [30, 80, 45, 100, 60, 25, 90];

it('a page that is busy half of the time gets its share, for it says when its messages came', () => {
  expect(share([], 0, true).share).toBeGreaterThan(0.9);
  const busy = share(tasks, 60, true);
  expect(busy.share).toBeGreaterThan(0.65); // measured 0.72
  // Of the 20 ms that are the target, and the burst of a window.
  expect(busy.stats.queuing).toBeLessThan(40_000);
  // The clock is what makes it so.
  expect(share(tasks, 60, false).share).toBeLessThan(0.3); // 0.07
});

it('a page that is busy all the time gets on, and a clock that stops is not waited for', () => {
  expect(share([400], 5, true).share).toBeGreaterThan(0.05);
  expect(share([12], 12, false).share).toBeGreaterThan(0.6);
});
