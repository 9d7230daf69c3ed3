import { expect, it } from 'vitest';
import { statsOf } from '../ledbat/host.ts';
import { join, Line, Store, Thread, Time, tasks as tasksOf, Wire } from '../testing/line.ts';
import { createBackground } from './background.ts';
import { backgroundType } from './message.ts';

/** What a page gets of 5 Mbit/s, 40 ms, whose thread is busy in between, as a part of the line. */
const share = (tasks: number[], between: number, beats: boolean, overtaken?: (n: number) => number) => {
  const time = new Time();
  const thread = new Thread(time);
  thread.overtaken = overtaken ?? thread.overtaken;
  const line = new Line(time, 625_000);
  const wire = new Wire(line, 40);
  const host = (alarm: Parameters<typeof createBackground>[0]['alarm']) =>
    createBackground({ clock: time, alarm, soon: time.soon });
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
  return { share: (wire.bytes - before) / 20 / 625_000, queue, stats: statsOf(sender.sender.host), page };
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

it('a beat that messages overtake dates none of them before it came', () => {
  // As in Firefox, where 9 of 3,662 beats were heard 8 to 26 ms behind messages that were sent after them.
  const one = (n: number) => (n % 20 ? 0 : 8 + (n % 19));
  expect(share([], 0, true, one).share).toBeGreaterThan(0.9);
  expect(share(tasks, 60, true, one).share).toBeGreaterThan(0.65);
});

/** What a page whose thread is busy in between sends of a line, as a part of it, and the most that waits of what is not paced. */
const sends = (tasks: number[], between: number, rate: number, urgent = true) => {
  const time = new Time();
  const thread = new Thread(time);
  const wire = new Wire(new Line(time, rate), 30);
  const host = (alarm: Parameters<typeof createBackground>[0]['alarm']) =>
    createBackground({ clock: time, alarm, soon: time.soon });
  const [lane] = join(host(thread.alarm(true)), host(time.alarm()), wire, new Store(1e12, urgent));
  const { arrived, acked } = wire;
  let came = 0;
  let plain = 0;
  wire.arrived = (m) => {
    came += m.length;
    if (m[0] === backgroundType) arrived(m);
    else plain += m.length;
  };
  wire.acked = (m) => thread.run(() => acked(m));
  wire.drained = () => thread.run(() => lane.wake());
  thread.work(tasks, between);
  time.pass(5_000);
  const before = came;
  let waiting = 0;
  for (let i = 0; i < 2_000; i++) {
    time.pass(10);
    waiting = Math.max(waiting, wire.buffered);
  }
  return { share: (came - before) / 20 / rate, plain, waiting };
};

/** What a page whose thread is busy in between sends of a short line after another flow has had seven tenths of it, as a part of it. */
const alone = (rate: number, rtt: number, tasks: number[], between: number) => {
  const time = new Time();
  const thread = new Thread(time);
  const line = new Line(time, rate);
  const wire = new Wire(line, rtt);
  const host = (alarm: Parameters<typeof createBackground>[0]['alarm']) =>
    createBackground({ clock: time, alarm, soon: time.soon });
  const other = new Thread(time);
  const [lane] = join(host(thread.alarm(true)), host(other.alarm(true)), wire, new Store(1e12, true));
  const { acked } = wire;
  wire.acked = (m) => thread.run(() => acked(m));
  wire.drained = () => thread.run(() => lane.wake());
  time.pass(500);
  thread.work(tasks, between);
  time.pass(3_000);
  line.crowd(0.7, 10);
  time.pass(10_000);
  const before = wire.bytes;
  time.pass(30_000);
  return (wire.bytes - before) / 30 / rate;
};

it('a page with a busy thread has a short line for itself again, once another flow is gone', () => {
  // Alarms that are late are no time without anything to send. With a round trip alone for it, one of three stayed at 0.22.
  for (const seed of [1, 2, 3]) {
    expect(alone(2_500_000, 3, tasksOf(seed, 10, 60), 40), `20 Mbit/s, ${seed}`).toBeGreaterThan(0.4);
    expect(alone(6_250_000, 4, tasksOf(seed, 5, 20), 10), `50 Mbit/s, ${seed}`).toBeGreaterThan(0.45);
  }
});

it('a page that comes to nothing for long at a time leaves to SCTP what a player waits for', () => {
  const starved = [100, 300, 200, 400, 150];
  for (const rate of [625_000, 5_000_000]) {
    const late = sends(starved, 15, rate);
    expect(late.share).toBeGreaterThan(0.15); // paced, 9 kB/s
    expect(late.waiting).toBeLessThan(262_144 + 16_384);
    // Background waits, and a page that is busy half of the time can pace.
    expect(sends(starved, 15, rate, false).plain).toBe(0);
    expect(sends(tasks, 60, rate).plain).toBe(0);
  }
});

it('a page that has its thread for itself again paces again', () => {
  const time = new Time();
  const thread = new Thread(time);
  const wire = new Wire(new Line(time, 625_000), 30);
  const host = (alarm: Parameters<typeof createBackground>[0]['alarm']) =>
    createBackground({ clock: time, alarm, soon: time.soon });
  const store = new Store(1e12, true);
  const [lane] = join(host(thread.alarm(true)), host(time.alarm()), wire, store);
  const { arrived, acked } = wire;
  let paced = 0;
  let plain = 0;
  wire.arrived = (m) => {
    if (m[0] === backgroundType) paced += m.length;
    else plain += m.length;
    if (m[0] === backgroundType) arrived(m);
  };
  wire.acked = (m) => thread.run(() => acked(m));
  wire.drained = () => thread.run(() => lane.wake());
  thread.work([100, 300, 200, 400, 150], 15, 10_000);
  time.pass(10_000);
  expect(plain).toBeGreaterThan(0);
  // A piece from time to time leaves the buffers empty, so that only an alarm can tell.
  store.left = 0;
  for (let i = 0; i < 100; i++) {
    if (i === 50) paced = plain = 0;
    store.left += 16_384;
    lane.wake();
    time.pass(100);
  }
  expect([plain, paced > 700_000]).toEqual([0, true]);
});

/** Bytes a second over a cable of 100 Mbit/s between machines whose processors come to nothing for 15 to 40 ms at a time. */
const near = (urgent: boolean, delay: number) => {
  const time = new Time();
  const line = new Line(time, 12_500_000);
  const wire = new Wire(line, delay);
  const machines = [new Thread(time), new Thread(time)] as const;
  const host = (thread: Thread) => createBackground({ clock: time, alarm: thread.alarm(false), soon: time.soon });
  const sender = host(machines[0]);
  const [near] = join(sender, host(machines[1]), wire, new Store(1e12, urgent));
  const { arrived, acked } = wire;
  let came = 0;
  wire.arrived = (m) =>
    machines[1].run(() => {
      came += m.length;
      if (m[0] === backgroundType) arrived(m);
    });
  wire.acked = (m) => machines[0].run(() => acked(m));
  wire.drained = () => machines[0].run(() => near.wake());
  time.pass(500);
  machines[0].work([20, 35, 15, 40, 25], 1);
  machines[1].work([30, 15, 25, 20, 40, 35], 1);
  time.pass(2_000);
  const before = came;
  let waiting = 0;
  for (let i = 0; i < 500; i++) {
    time.pass(10);
    waiting = Math.max(waiting, wire.buffered);
  }
  return { rate: (came - before) / 5, waiting };
};

it('between two machines on a cable what a player waits for is not paced, however late they are', () => {
  const cable = near(true, 0.5);
  expect(cable.rate).toBeGreaterThan(5_000_000);
  expect(cable.waiting).toBeLessThan(262_144 + 16_384);
  // A line is, and so is background.
  expect(near(true, 10).rate).toBeLessThan(1_000_000);
  expect(near(false, 0.5).rate).toBeLessThan(1_000_000);
});

it.each([1_200, 4_096, 16_384])('what is not paced keeps to messages of %i bytes, and to the cap', (most) => {
  const time = new Time();
  const wire = new Wire(new Line(time, 12_500_000), 0.5);
  wire.maxMessage = most;
  const host = () => createBackground({ clock: time, alarm: time.alarm(), soon: time.soon });
  const sender = host();
  sender.cap(8_000);
  const [lane] = join(sender, host(), wire, new Store(1e12, true));
  const { arrived } = wire;
  let plain = 0;
  wire.arrived = (m) => {
    if (m[0] === backgroundType) arrived(m);
    else plain += m.length;
  };
  wire.drained = () => lane.wake();
  time.pass(1_000);
  plain = 0;
  time.pass(10_000);
  expect(plain / 10).toBeGreaterThan(990_000);
  expect(plain / 10).toBeLessThan(1_001_000);
  expect(Math.max(...wire.sizes)).toBeLessThanOrEqual(most);
});
