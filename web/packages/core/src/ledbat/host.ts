import { div, firstRtt, idleMin, initialWindow, maxTarget, never, pacingGain, packet } from './constants.ts';
import { Controller, type Signal, type State } from './controller.ts';
import { type Delays, targetOf } from './delay.ts';

/** How a host stands. Times in µs, sizes in bytes. */
export interface LedbatStats {
  state: State;
  window: number;
  flight: number;
  queuing: number;
  target: number;
  /** 0 while unknown. */
  base: number;
  rtt: number;
  slowdowns: number;
  /** Times the window fell to the floor for delay. */
  yields: number;
}

/** Of an even number the lower one. */
const median = (list: number[]): number => list.sort((a, b) => a - b)[(list.length - 1) >> 1]!;

/** What both sides of the transport share: a controller for all links of a host, and what the links' delays say together. */
export class Host {
  declare controller: Controller;
  parts = 1;
  members: Delays[] = [];
  /** Bytes sent and not acked, or asked for and not come. */
  flight = 0;
  /** Pacing: before this moment nothing goes out. */
  declare next: number;
  /** When the window was last hit. */
  declare limitedAt: number;
  lastAt = -never;
  yields = 0;
  /** The largest window with which the median saw the line not full. */
  declare clear: number;
  /** What takes longer there and back than this is not on the host's line any more. */
  declare far: number;
  /** As of the last ack: queuing, target, base, round trip over the links. */
  declare view: Signal;

  constructor() {
    this.restart();
  }

  /** Begins anew: nothing is known of the line. */
  restart(): void {
    const { parts } = this;
    this.controller = new Controller(true);
    this.next = 0;
    this.limitedAt = -never;
    this.clear = initialWindow;
    this.far = 2 * firstRtt;
    this.view = { now: 0, acked: 0, queuing: 0, target: maxTarget, base: 0, rtt: 0, limited: false, parts };
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

  /** Puts the delays of a link that starts anew in the place of its old ones. If no other link sends, the host starts anew too. */
  replace(old: Delays, fresh: Delays, now: number): void {
    const i = this.members.indexOf(old);
    if (i >= 0) this.members[i] = fresh;
    if (!this.members.some((m) => m !== fresh && m.fresh(now))) this.restart();
  }

  /** Lets the controller hear of an idle time, when there was one. */
  wake(now: number): void {
    const idle = now - this.lastAt > Math.max(idleMin, 4 * this.view.rtt);
    if (this.flight === 0 && idle && this.controller.window >= packet) {
      this.look(now);
      this.controller.onIdle(this.view);
    }
    this.lastAt = now;
  }

  /**
   * What the links that were heard of lately say together. The host's own queue shows on all of them, a queue farther out, or
   * a lie, on one: the median, and of two the lesser one.
   */
  look(now: number): void {
    const v = this.view;
    v.now = now;
    v.parts = this.parts;
    v.limited = now - this.limitedAt <= Math.max(v.rtt, firstRtt);
    const fresh = this.members.filter((d) => d.fresh(now));
    if (!fresh.length) return;
    const trips = fresh.map((d) => d.srtt);
    this.far = Math.max(4 * Math.min(...trips), 2 * firstRtt);
    v.rtt = Math.min(median(trips), this.far);
    v.base = Math.min(median(fresh.map((d) => d.base())), this.far);
    v.target = targetOf(v.base);
    this.#weigh(now, fresh);
  }

  /**
   * Takes the median of the queues. Where it says that the window is too large for one that the line was not full with, a link
   * that sees no queue refutes those that claim one, until they take it back.
   */
  #weigh(now: number, fresh: Delays[]): void {
    const v = this.view;
    const newest = this.members.reduce((a, d) => (d.sampledAt > a.sampledAt ? d : a)).queuing();
    // A queue may have gone since a silent link saw it; had it come, those that send would see it.
    const said = (d: Delays) => (d.current(now) ? d.queuing() : Math.min(d.queuing(), newest));
    v.queuing = median(fresh.map(said));
    const { state, window } = this.controller;
    // In slow start, what is sent shows a round trip and a half later.
    const seen = state === 'slow-start' ? div(window, 2) : window;
    if (2 * v.queuing < v.target) this.clear = Math.max(this.clear, seen);
    const least = this.leastQueue(now);
    for (const d of this.members) {
      const q = d.queuing();
      d.refuted = 2 * q >= v.target && (d.refuted || (2 * least < v.target && 2 * (q - least) > v.target));
    }
    const believed = fresh.filter((d) => !d.refuted);
    if (seen < this.clear && believed.length) v.queuing = Math.min(v.queuing, median(believed.map(said)));
  }

  /** The least queue of the links whose samples are of now; never if there are none. */
  leastQueue(now: number): number {
    return Math.min(never, ...this.members.filter((d) => d.fresh(now) && d.current(now)).map((d) => d.queuing()));
  }

  /** The host's controller hears of an ack; counts when it gives way. */
  ack(s: Signal): void {
    const before = this.controller.window;
    this.controller.onAck(s);
    const after = this.controller.window;
    if (before > packet && after <= packet) this.yields++;
    if (before < packet && after >= packet) this.next = Math.min(this.next, s.now);
  }

  /** Bytes/s: the window spread over a round trip, with some to spare, so that it is the window that limits. */
  pacingRate(rtt = this.view.rtt || firstRtt): number {
    const { window, state } = this.controller;
    if (window < 2 * packet) return div(window * 1_000_000, rtt);
    if (state === 'slow-start' || state === 'ramp') return div(2 * window * 1_000_000, rtt);
    return div(window * pacingGain * 1000, rtt);
  }
}

/** For benches and tests. No page asks. */
export const statsOf = ({ controller, flight, view, yields }: Host): LedbatStats => {
  const { state, window, slowdowns } = controller;
  const { queuing, target, base, rtt } = view;
  return { state, window, flight, queuing, target, base, rtt, slowdowns, yields };
};
