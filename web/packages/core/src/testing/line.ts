/** A line in simulated time, for tests: links share a bottleneck, and what they carry comes half a round trip later. */

import { beatsMs } from '../background/beats.ts';
import type { Part } from '../background/message.ts';
import type { Alarm, Background, BackgroundLane, BackgroundLink, BackgroundSource } from '../background/ports.ts';
import type { Clock } from '../ports.ts';

/** Time that passes when it is told to; events of one moment happen in the order in which they were asked for. */
export class Time implements Clock {
  #now = 1_000;
  #next = 1;
  #events: { at: number; id: number; f: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  setTimer(f: () => void, ms: number): number {
    const event = { at: this.#now + Math.max(0, ms), id: this.#next++, f };
    let i = this.#events.length;
    while (i > 0 && this.#events[i - 1]!.at > event.at) i--;
    this.#events.splice(i, 0, event);
    return event.id;
  }

  clearTimer(id: number): void {
    const i = this.#events.findIndex((e) => e.id === id);
    if (i >= 0) this.#events.splice(i, 1);
  }

  soon = (f: () => void): void => {
    this.setTimer(f, 0);
  };

  /** An alarm on this time, in whole milliseconds and late by what the grain says, as a browser's are. */
  alarm =
    (grain = 1) =>
    (f: () => void): Alarm => {
      let at = Number.POSITIVE_INFINITY;
      let id = 0;
      return {
        set: (ms) => {
          if (this.#now + ms >= at) return;
          at = this.#now + ms;
          this.clearTimer(id);
          id = this.setTimer(
            () => {
              at = Number.POSITIVE_INFINITY;
              f();
            },
            Math.ceil(ms / grain) * grain,
          );
        },
        stop: () => this.clearTimer(id),
      };
    };

  get pending(): number {
    return this.#events.length;
  }

  pass(ms: number): void {
    const end = this.#now + ms;
    while (this.#events[0] && this.#events[0].at <= end) {
      const { at, f } = this.#events.shift()!;
      this.#now = at;
      f();
    }
    this.#now = end;
  }
}

/** The thread of a page that has other things to do: what comes meanwhile waits in line. */
export class Thread {
  readonly time: Time;
  /** How much longer than its turn the n-th beat waits, ms, from 1: what comes meanwhile overtakes it. */
  overtaken: (n: number) => number = () => 0;
  #free = 0;
  #beats = 0;
  #queue: (() => void)[] = [];

  constructor(time: Time) {
    this.time = time;
  }

  /** Has it busy for so long each time, in turn, and free for as long as it says in between, ms; for so long in all. */
  work(tasks: number[], between: number, most = Number.POSITIVE_INFINITY): void {
    let n = 0;
    const end = this.time.now() + most;
    const next = () => {
      if (this.time.now() >= end) return;
      const ms = tasks[n++ % tasks.length]!;
      this.#free = this.time.now() + ms;
      this.time.setTimer(() => {
        for (const f of this.#queue.splice(0)) f();
        this.time.setTimer(next, between);
      }, ms);
    };
    next();
  }

  /** Runs f when its turn comes. */
  run(f: () => void): void {
    if (this.time.now() < this.#free) this.#queue.push(f);
    else f();
  }

  /** An alarm that is heard on this thread, from a worker that beats, if it does. */
  alarm =
    (beats: boolean) =>
    (f: () => void, heard: (ms?: number) => void): Alarm => {
      let left = 0;
      let id = 0;
      const beat = (ms: number) => {
        left = beatsMs / ms;
        const tick = () => {
          const at = this.time.now() - 700; // its own zero
          const hear = () => this.run(() => heard(at));
          const behind = this.overtaken(++this.#beats);
          if (behind) this.time.setTimer(hear, behind);
          else hear();
          if (--left > 0) id = this.time.setTimer(tick, ms);
        };
        this.time.clearTimer(id);
        id = this.time.setTimer(tick, ms);
      };
      const alarm = this.time.alarm()(() => this.run(f));
      const queue = () => this.time.setTimer(() => this.run(() => heard()), 0);
      return beats ? { ...alarm, beat, queue } : alarm;
    };
}

/** Tasks of a thread, ms, between two bounds. */
export const tasks = (seed: number, low: number, high: number): number[] => {
  let state = seed;
  return Array.from({ length: 97 }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.round(low + ((high - low) * state) / 2 ** 32);
  });
};

/** A bottleneck of so many bytes per second. */
export class Line {
  free = 0;
  readonly time: Time;
  readonly rate: number;

  constructor(time: Time, rate: number) {
    this.time = time;
    this.rate = rate;
  }

  /** How long so many bytes take that come now, those before them included, ms. */
  pass(bytes: number): number {
    this.free = Math.max(this.free, this.time.now()) + (bytes / this.rate) * 1000;
    return this.free - this.time.now();
  }

  /** Has another flow take a part of it for so many seconds. */
  crowd(part: number, seconds: number): void {
    const until = this.time.now() + seconds * 1000;
    const next = () => {
      if (this.time.now() >= until) return;
      this.pass(this.rate * part * 0.005);
      this.time.setTimer(next, 5);
    };
    next();
  }
}

/** One link: its sending end and what arrives at the other. */
export class Wire implements BackgroundLink {
  maxMessage = 16_384;
  readonly sizes: number[] = [];
  readonly times: number[] = [];
  bytes = 0;
  acks = 0;
  /** Bytes in the channel's buffer. */
  buffered = 0;
  /** Whether the n-th message is lost, from 1; it comes a round trip later, as SCTP sends it again. */
  lost: (n: number) => boolean = () => false;
  /** Called when a message has left the buffer, which counts what waits for the line then. */
  drained?: () => void;
  /** Acks do not arrive. */
  silent = false;
  arrived: (message: Uint8Array) => void = () => {};
  acked: (message: Uint8Array) => void = () => {};
  #line: Line;
  #delay: number;

  constructor(line: Line, delay: number) {
    this.#line = line;
    this.#delay = delay;
  }

  waiting(): number {
    return this.buffered;
  }

  sendBackground(sent: Uint8Array): boolean {
    const { time } = this.#line;
    const message = sent.slice(); // as a channel does
    this.sizes.push(message.length);
    this.times.push(time.now());
    this.bytes += message.length;
    const again = this.lost(this.sizes.length) ? this.#delay : 0;
    const pass = this.#line.pass(message.length);
    if (this.drained) {
      this.buffered += message.length;
      time.setTimer(() => {
        this.buffered -= message.length;
        this.drained?.();
      }, pass);
    }
    time.setTimer(() => this.arrived(message), pass + this.#delay / 2 + again);
    return true;
  }

  sendAck(message: Uint8Array): void {
    this.acks++;
    this.#line.time.setTimer(() => this.silent || this.acked(message), this.#delay / 2);
  }
}

/** A source of so many bytes. */
export class Store implements BackgroundSource {
  left: number;
  #urgent: boolean;

  constructor(left: number, urgent = false) {
    this.left = left;
    this.#urgent = urgent;
  }

  urgent(): boolean {
    return this.#urgent && this.left > 0;
  }

  waiting(): boolean {
    return this.left > 0;
  }

  next(n: number): Part | undefined {
    const size = Math.min(n, this.left);
    this.left -= size;
    return size > 0 ? { request: 7, offset: 0, payload: new Uint8Array(size) } : undefined;
  }
}

/** Joins two hosts by a link: what one sends of the store goes over the wire, and the acks come back. */
export const join = (
  from: Background,
  to: Background,
  wire: Wire,
  store: Store,
  peer = '',
): [BackgroundLane, BackgroundLane] => {
  const near = from.add(wire, store, peer);
  const far = to.add(wire, new Store(0), peer);
  wire.arrived = (m) => void far.data(m);
  wire.acked = (m) => void near.ack(m);
  return [near, far];
};
