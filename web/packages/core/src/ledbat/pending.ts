import { inBitmap, type LedbatAck } from './ack.ts';
import { lostAfter } from './constants.ts';

interface Message {
  sentAt: number;
  size: number;
  /** Acked or lost. */
  gone: boolean;
  /** Waited in our own buffer: gives no delay sample. */
  blind: boolean;
}

/** Why an ack cannot be: it acks what was never sent, or its cumulative lies above highest + 1. */
export type Problem = 'future' | 'cumulative';

/** What an ack did: bytes, messages, and the message that gives a delay sample. */
export interface Taken {
  acked: number;
  lost: number;
  messages: number;
  newest?: Message;
  problem?: Problem;
}

/** What a link has in flight: its messages in the order of their sequences. */
export class Pending {
  /** Bytes neither acked nor lost. */
  flight = 0;
  /** When the newest was sent, or the last ack came that moved anything. */
  lastAt = 0;
  #list: Message[] = [];
  /** Sequence of the first of the list, unwrapped. */
  #first = 0;
  #highest = -1;

  get length(): number {
    return this.#list.length;
  }

  add(now: number, size: number, blind: boolean): number {
    this.#list.push({ sentAt: now, size, gone: false, blind });
    this.flight += size;
    this.lastAt = now;
    return (this.#first + this.#list.length - 1) >>> 0;
  }

  ack(a: LedbatAck): Taken {
    const out: Taken = { acked: 0, lost: 0, messages: 0 };
    const next = this.#first + this.#list.length;
    const highest = next - 1 - ((next - 1 - a.highest) | 0);
    const cumulative = highest + 1 - ((a.highest + 1 - a.cumulative) | 0);
    if (highest < 0 || highest >= next) return { ...out, problem: 'future' };
    if (cumulative > highest + 1 || cumulative < 0) return { ...out, problem: 'cumulative' };
    if (highest > this.#highest && highest >= this.#first) {
      out.newest = this.#list[highest - this.#first]!;
      this.#highest = highest;
    }
    for (const [i, m] of this.#list.entries()) {
      const seq = this.#first + i;
      if (seq > highest) break;
      if (m.gone || !(seq < cumulative || seq === highest || inBitmap(a, highest - seq))) continue;
      m.gone = true;
      out.acked += m.size;
      out.messages++;
    }
    out.lost = this.#lose();
    this.flight -= out.acked + out.lost;
    this.#trim();
    return out;
  }

  /** What is missing below `lostAfter` newer acked messages is lost. */
  #lose(): number {
    let newer = 0;
    let bytes = 0;
    for (let i = this.#highest - this.#first; i >= 0; i--) {
      const m = this.#list[i]!;
      if (m.gone) newer++;
      else if (newer >= lostAfter) {
        m.gone = true;
        bytes += m.size;
      }
    }
    return bytes;
  }

  #trim(): void {
    const keep = this.#list.findIndex((m) => !m.gone);
    const n = keep < 0 ? this.#list.length : keep;
    this.#first += n;
    this.#list.splice(0, n);
  }

  /** Whether anything in flight was sent so long ago, and was not heard of since. */
  olderThan(age: number, now: number): boolean {
    return this.flight > 0 && now - this.#list[0]!.sentAt > age;
  }

  /** Takes all that is in flight for lost. */
  giveUp(): void {
    this.#first += this.#list.length;
    this.#list = [];
    this.flight = 0;
  }
}
