import {
  ceilingBest,
  ceilingDrain,
  ceilingFast,
  ceilingKeep,
  ceilingLong,
  ceilingPause,
  ceilingQueue,
  ceilingSlow,
  ceilingTime,
  div,
  never,
  packet,
} from './constants.ts';

/** The rate that a host with foreground does not pass: what its line was seen to carry while full. */
export class Ceiling {
  /** The host had foreground once. */
  on = false;
  /** Bytes/s; 0: the line never was full. */
  #rate = 0;
  /** Of the current stretch: bytes sent, acked and beside the controller, its begin; whether something waited for the ceiling. */
  #sent = 0;
  #acked = 0;
  #beside = 0;
  #since = 0;
  #pressed = false;
  /** What the window asked for when something last went out, and whether the ceiling was less. */
  #asked = 0;
  #binding = false;
  #full = false;
  /** µs of queue, as of the last ack that told. */
  #queue = 0;
  #fullAt = 0;
  /** Highest rates of the current time and of the one before, and when the current one began. */
  #best = 0;
  #before = 0;
  #bestAt = 0;

  /** Bounds a rate that the window asks for. */
  of(rate: number): number {
    if (!this.on || !this.#rate) return rate;
    const drain = this.#full ? div(this.#rate * Math.min(this.#queue, ceilingDrain), 2 * ceilingDrain) : 0;
    return Math.min(rate, this.#rate - drain);
  }

  /** Notes a message; gives the rate for the time until the next. */
  send(size: number, asked: number): number {
    this.#pressed ||= this.#binding;
    this.#sent += size;
    this.#asked = asked;
    const rate = this.of(asked);
    this.#binding = rate < asked;
    return rate;
  }

  /** Notes bytes that went out outside the controller; gives the time that they take of the line, µs. */
  beside(size: number): number {
    if (this.on) this.#beside += size;
    return this.#rate && div(size * 1_000_000, this.#rate);
  }

  /** Begins a stretch. */
  anew(now: number): void {
    this.#since = now;
    this.#sent = this.#acked = this.#beside = 0;
    this.#pressed = false;
  }

  /** Takes in an ack, and the least queue of all links that were sampled in the last round trip. */
  hear(now: number, acked: number, queue: number, rtt: number): void {
    const old = this.#rate;
    this.#acked += acked;
    const known = queue < never;
    if (known) {
      this.#queue = queue;
      this.#full = queue >= Math.max(ceilingQueue, old && div(packet * 1_000_000, old));
    }
    const span = now - this.#since;
    if (span < Math.max(rtt, ceilingTime)) return;
    const rate = div((Math.min(this.#sent, this.#acked) + this.#beside) * 1_000_000, span);
    const pressed = this.#pressed;
    this.anew(now);
    if (span > ceilingPause) return;
    if (now - this.#bestAt > ceilingBest) {
      this.#before = this.#best;
      this.#best = 0;
      this.#bestAt = now;
    }
    this.#best = Math.max(this.#best, rate);
    if (!known) return;
    if (this.#full) this.#fullAt = now;
    if (this.#full && !old) this.#rate = Math.max(rate, div(this.#asked, 2));
    else if (pressed && this.#full) {
      const keep = div(Math.max(this.#best, this.#before) * ceilingKeep, 100);
      this.#rate = Math.min(old, Math.max(rate, keep));
    } else if (pressed) this.#rate += div(old, now - this.#fullAt > ceilingLong ? ceilingFast : ceilingSlow);
  }
}
