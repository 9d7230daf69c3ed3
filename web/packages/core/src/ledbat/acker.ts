import type { LedbatAck, Stamp } from './ack.ts';
import { ackGap, div, fastRate, maxPending, rareRate, rateTime } from './constants.ts';

/** The receiving end of a link: hears of background messages and makes their acks. */
export class Acker {
  /** When the next ack must go out; 0: nothing to tell. */
  due = 0;
  /** What comes is foreground, whose senders bear more of a queue: it is acknowledged less often, unless acks are few anyway. */
  foreground = false;
  /** The clock is coarse: each message is acknowledged at once, since it could not say how long one was held. */
  coarse = false;
  /** The sequences above `#cumulative` that have come. */
  #came = new Set<number>();
  #cumulative = 0;
  #highest = -1;
  #highestAt = 0;
  #waiting = 0;
  #sentAt = 0;
  #bytes = 0;
  #ratedAt = 0;
  #rate = 0;

  /** False for a message that came before or is impossibly far ahead; of the latter nothing is noted. */
  onData(now: number, bytes: number, stamp: Pick<Stamp, 'sequence' | 'ackNow'>): boolean {
    const seq = this.#cumulative + ((stamp.sequence - this.#cumulative) | 0);
    if (seq < this.#cumulative || seq >= this.#cumulative + 2 * maxPending) return false;
    while (seq >= this.#cumulative + maxPending) this.#pass(); // a hole that stays
    if (this.#came.has(seq)) return false;
    this.#came.add(seq);
    if (seq > this.#highest) {
      this.#highest = seq;
      this.#highestAt = now;
    }
    while (this.#came.has(this.#cumulative)) this.#pass();
    this.#measure(now, bytes);
    this.#waiting++;
    if (this.coarse) {
      this.due = now;
      return true;
    }
    const fast = this.#rate >= fastRate;
    const every = fast || (this.foreground && this.#rate >= rareRate) ? 8 : 2;
    if (stamp.ackNow || this.#waiting >= every) this.due = Math.max(now, this.#sentAt + ackGap);
    else if (this.due === 0) this.due = now + (fast ? 10_000 : 25_000);
    return true;
  }

  /** The message of a sequence number was there by then: what hears of messages may have been busy. */
  cameBy(sequence: number, then: number): void {
    if ((sequence | 0) === (this.#highest | 0)) this.#highestAt = Math.min(this.#highestAt, then);
  }

  #pass(): void {
    this.#came.delete(this.#cumulative++);
  }

  #measure(now: number, bytes: number): void {
    this.#bytes += bytes;
    const span = now - this.#ratedAt;
    if (span < rateTime) return;
    this.#rate = div(this.#bytes * 1_000_000, span);
    this.#bytes = 0;
    this.#ratedAt = now;
  }

  /** Makes the ack that is due; undefined while there is nothing to tell. */
  make(now: number): LedbatAck | undefined {
    if (this.due === 0) return undefined;
    const bitmap: [number, number] = [0, 0];
    for (let i = 0; i < 64; i++) {
      const seq = this.#highest - 1 - i;
      if (seq < 0) break;
      if (seq < this.#cumulative || this.#came.has(seq)) bitmap[i >> 5]! |= 1 << (31 - (i & 31));
    }
    this.due = 0;
    this.#waiting = 0;
    this.#sentAt = now;
    return {
      cumulative: this.#cumulative >>> 0,
      highest: this.#highest >>> 0,
      bitmap: [bitmap[0] >>> 0, bitmap[1] >>> 0],
      receivedAt: this.#highestAt >>> 0,
      hold: (now - this.#highestAt) >>> 0,
    };
  }
}
