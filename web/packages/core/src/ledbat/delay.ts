import {
  baseBuckets,
  bucketPatience,
  bucketSamples,
  bucketTime,
  div,
  firstRtt,
  freshTime,
  leastRtt,
  maxSkew,
  maxTarget,
  minTarget,
  never,
} from './constants.ts';

/** The least round-trip time and one-way delay of some span, µs. */
interface Pair {
  rtt: number;
  owd: number;
}

const unknown: Pair = { rtt: never, owd: never };
const least = (a: Pair, b: Pair): Pair => ({ rtt: Math.min(a.rtt, b.rtt), owd: Math.min(a.owd, b.owd) });

export const targetOf = (base: number): number => Math.min(Math.max(div(base, 2), minTarget), maxTarget);

/** Filters what the acks of one link say: current delay, base delay, smoothed round-trip time. */
export class Delays {
  /** µs; 0: no sample yet. */
  srtt = 0;
  rttvar = 0;
  sampledAt = 0;
  /** Claims a queue where another link saw none. */
  refuted = false;
  /** The first one-way delay; the others are counted from it, so that clocks that differ do not matter. */
  #owdZero: number | undefined;
  /** The clocks run apart: one-way delays say nothing. */
  #owdSkewed = false;
  #prev = unknown;
  #half = unknown;
  #halfAt: number;
  /** Base history: minima of closed buckets, oldest first. */
  #closed: Pair[] = [];
  #open = unknown;
  #openedAt: number;
  #samples = 0;
  /** The open bucket saw a queuing delay below the target. */
  #low = false;

  constructor(now: number, base = 0) {
    this.#halfAt = now;
    this.#openedAt = now;
    if (base > 0) this.#open = { rtt: base, owd: never };
  }

  /** Takes in a round-trip time and a one-way delay as the clocks show it (32 bits, wrapping). */
  sample(now: number, rtt: number, owd: number): void {
    this.#owdZero ??= owd;
    const s = { rtt, owd: (owd - this.#owdZero) | 0 };
    this.#smooth(now, rtt);
    this.#turn(now);
    this.#half = least(this.#half, s);
    this.#open = least(this.#open, s);
    this.#samples++;
    this.sampledAt = now;
    if (this.queuing() < this.target()) this.#low = true;
    this.#close(now);
  }

  #smooth(now: number, rtt: number): void {
    if (this.srtt === 0) {
      this.srtt = Math.max(leastRtt, rtt);
      this.rttvar = div(rtt, 2);
      return;
    }
    const weight = 2 * (now - this.sampledAt) >= this.srtt ? 2 : 8;
    this.rttvar = div(3 * this.rttvar + Math.abs(this.srtt - rtt), 4);
    this.srtt = Math.max(leastRtt, div((weight - 1) * this.srtt + rtt, weight));
  }

  /** The window of the current delay moves on: it always covers between half and one smoothed round trip. */
  #turn(now: number): void {
    const span = now - this.#halfAt;
    if (2 * span < this.srtt) return;
    this.#prev = span >= this.srtt ? unknown : this.#half;
    this.#half = unknown;
    this.#halfAt = now;
  }

  #close(now: number): void {
    const age = now - this.#openedAt;
    if (age < bucketTime || this.#samples < bucketSamples || (!this.#low && age < bucketPatience)) return;
    const last = this.#closed.at(-1);
    if (last) {
      const fell = last.owd - this.#open.owd - Math.max(0, last.rtt - this.#open.rtt);
      this.#owdSkewed = fell > maxSkew * div(age, bucketTime);
      if (this.#closed.length === baseBuckets - 1) this.#closed.shift();
    }
    this.#closed.push(this.#open);
    this.#open = unknown;
    this.#openedAt = now;
    this.#samples = 0;
    this.#low = false;
  }

  #base(): Pair {
    return this.#closed.reduce(least, this.#open);
  }

  /** The filtered queuing delay: the lesser of what round trips and one-way delays say. */
  queuing(): number {
    if (this.srtt === 0) return 0;
    const base = this.#base();
    const now = least(this.#prev, this.#half);
    let q = now.rtt - base.rtt;
    if (!this.#owdSkewed) q = Math.min(q, now.owd - base.owd);
    return Math.max(0, q);
  }

  /** µs of the round trip; 0 while unknown. */
  base(): number {
    const { rtt } = this.#base();
    return rtt === never ? 0 : Math.max(1, rtt);
  }

  target(): number {
    return targetOf(this.base());
  }

  /** Whether the link has been heard of lately enough to speak for the host. */
  fresh(now: number): boolean {
    return this.srtt > 0 && now - this.sampledAt <= Math.max(2 * this.srtt, freshTime);
  }

  /** Whether the queuing delay is of now: the samples cover the last round trip. */
  current(now: number): boolean {
    return now - this.sampledAt <= Math.max(this.srtt, firstRtt);
  }
}
