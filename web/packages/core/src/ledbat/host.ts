import {
  div,
  firstRtt,
  idleMin,
  maxInterval,
  maxTarget,
  never,
  pacingGain,
  packet,
  suspendAfter,
} from './constants.ts';
import { type Delays, targetOf } from './delay.ts';
import { Law, type Signal, type State } from './law.ts';

/** The state of a host or of a path. Times in µs, sizes in bytes, rates in bytes/s. */
export interface LedbatStats {
  state: State;
  suspended: boolean;
  window: number;
  flight: number;
  pacingRate: number;
  queuing: number;
  target: number;
  /** 0 while unknown. */
  base: number;
  rtt: number;
  slowdowns: number;
  /** Times the window fell to the floor for delay. */
  yields: number;
}

const freshView = (parts: number): Signal => ({
  now: 0,
  acked: 0,
  queuing: 0,
  target: maxTarget,
  base: 0,
  rtt: 0,
  limited: false,
  parts,
});

/** The time between packets of a window that is below one packet. */
export const interval = (window: number, rtt: number): number => Math.min(div(rtt * packet, window), maxInterval);

/** What both sides of the transport share: a law for all links of a host, and what the links' delays say together. */
export class Host {
  law = new Law(true);
  parts: number;
  members: Delays[] = [];
  /** Bytes sent and not acked, or asked for and not come. */
  flight = 0;
  /** Pacing: before this moment nothing goes out. */
  next = 0;
  /** When the window was last hit. */
  limitedAt = -never;
  lastAt = -never;
  yields = 0;
  /** As of the last ack: queuing, target, base, round trip over the links. */
  view: Signal;

  constructor(parts = 1) {
    this.parts = Math.max(1, parts);
    this.view = freshView(this.parts);
  }

  /** Among how many hosts' tabs the line is divided from now on. */
  setParts(n: number): void {
    this.parts = Math.max(1, n);
  }

  leave(d: Delays, flight: number): void {
    const i = this.members.indexOf(d);
    if (i < 0) return;
    this.members.splice(i, 1);
    this.flight -= flight;
  }

  /** Puts the delays of a link that starts anew in the place of its old ones. True: no other sends, and the host starts anew too. */
  replace(old: Delays, fresh: Delays, now: number): boolean {
    const i = this.members.indexOf(old);
    if (i >= 0) this.members[i] = fresh;
    if (this.members.some((m) => m !== fresh && m.fresh(now))) return false;
    this.law = new Law(true);
    this.next = 0;
    this.limitedAt = -never;
    this.view = freshView(this.parts);
    return true;
  }

  /** Lets the law hear of an idle time, when there was one. */
  wake(now: number): void {
    const idle = now - this.lastAt > Math.max(idleMin, 4 * this.view.rtt);
    if (this.flight === 0 && idle && this.law.window >= packet) {
      this.look(now);
      this.law.onIdle(this.view);
    }
    this.lastAt = now;
  }

  /** The median over the links that were heard of lately; of two it is the lesser one. */
  look(now: number): void {
    const v = this.view;
    v.now = now;
    v.parts = this.parts;
    v.limited = now - this.limitedAt <= Math.max(v.rtt, firstRtt);
    const fresh = this.members.filter((d) => d.fresh(now));
    if (!fresh.length) return;
    const median = (of: (d: Delays) => number) => fresh.map(of).sort((a, b) => a - b)[(fresh.length - 1) >> 1]!;
    v.rtt = median((d) => d.srtt);
    const newest = this.members.reduce((a, d) => (d.sampledAt > a.sampledAt ? d : a)).queuing();
    // A queue may have gone since a silent link saw it; had it come, those that send would see it.
    v.queuing = median((d) => (d.current(now) ? d.queuing() : Math.min(d.queuing(), newest)));
    v.base = median((d) => d.base());
    v.target = targetOf(v.base);
  }

  /** The least queue of the links whose samples are of now; never if there are none. */
  leastQueue(now: number): number {
    return Math.min(never, ...this.members.filter((d) => d.fresh(now) && d.current(now)).map((d) => d.queuing()));
  }

  /** The host's law hears of an ack; counts when it gives way. */
  ack(s: Signal): void {
    const before = this.law.window;
    this.law.onAck(s);
    const after = this.law.window;
    if (before > packet && after <= packet) this.yields++;
    if (before < packet && after >= packet) this.next = Math.min(this.next, s.now);
  }

  /** Bytes/s: the window spread over a round trip, with some to spare, so that it is the window that limits. */
  pacingRate(): number {
    const rtt = this.view.rtt || firstRtt;
    const { window, state } = this.law;
    if (window < 2 * packet) return div(window * 1_000_000, rtt);
    if (state === 'slow-start' || state === 'ramp') return div(2 * window * 1_000_000, rtt);
    return div(window * pacingGain * 1000, rtt);
  }

  stats(): LedbatStats {
    const { queuing, target, base, rtt } = this.view;
    return {
      state: this.law.state,
      suspended: interval(this.law.window, rtt) >= suspendAfter,
      window: this.law.window,
      flight: this.flight,
      pacingRate: this.pacingRate(),
      queuing,
      target,
      base,
      rtt,
      slowdowns: this.law.slowdowns,
      yields: this.yields,
    };
  }
}
