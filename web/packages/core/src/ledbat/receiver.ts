import type { Stamp } from './ack.ts';
import { div, maxMessage, maxRequestInterval, mostRtt, rateTime } from './constants.ts';
import { Delays } from './delay.ts';
import { Host } from './host.ts';

/** The requesting side of a host: the controller over the bytes asked for in the background lane that have not come yet. */
export class Receiver extends Host {
  /** The window was full, and a quarter of it was not free since. */
  held = false;
  /** Bytes of requests that came in this stretch, and in the last one. */
  #came = 0;
  #lately = 0;
  /** When this stretch began. */
  #since = 0;

  open(now: number): Source {
    return new Source(this, now);
  }

  /**
   * True: ask. Otherwise when to try again, or 0 while the window is full: then data say. A window that was full counts as full until a
   * quarter of it is free, if a quarter is more than a piece. One message then asks for all that fits into it.
   */
  mayRequest(now: number): true | number {
    const { window } = this.controller;
    const quarter = div(window, 4);
    this.held = this.flight > 0 && this.flight >= window - (this.held && quarter > maxMessage ? quarter : 0);
    if (this.held) {
      this.limitedAt = now;
      return 0;
    }
    return now < this.next ? this.next : true;
  }

  /**
   * Whether what came in this stretch or in the last one is half of the window. What waits at its senders is in no queue that delays
   * show, and a window full of that would grow for as long as it is asked for (RFC 7661: a window grows by what comes of it).
   */
  used(now: number, size: number): boolean {
    if (now - this.#since >= Math.max(this.view.rtt, rateTime)) {
      this.#lately = this.#came;
      this.#came = 0;
      this.#since = now;
    }
    this.#came += size;
    return this.controller.window <= 2 * Math.max(this.#came, this.#lately);
  }
}

/** One link of a receiver. */
export class Source {
  #r: Receiver;
  #delays: Delays;
  #flight = 0;
  #highest: number | undefined;

  constructor(r: Receiver, now: number) {
    this.#r = r;
    this.#delays = new Delays(now);
    r.members.push(this.#delays);
  }

  /** Takes the link from the host; what it still owes no longer counts. */
  close(): void {
    this.#r.leave(this.#delays, this.#flight);
    this.#flight = 0;
  }

  /** Forgets what was measured: the packets take another way now. */
  reset(now: number): void {
    const old = this.#delays;
    this.#delays = new Delays(now);
    this.#r.replace(old, this.#delays, now);
  }

  /** So many bytes were asked for in the background lane. */
  onRequest(now: number, size: number): void {
    const r = this.#r;
    r.wake(now);
    this.#flight += size;
    r.flight += size;
    const { window } = r.controller;
    if (r.flight >= window) r.limitedAt = now;
    if (window < size && r.view.rtt > 0) {
      r.next = now + Math.min(div(r.view.rtt * size, window), maxRequestInterval);
    }
  }

  /** So many bytes will not come in the background lane: rejected, canceled, promoted. */
  onGone(size: number): void {
    const gone = Math.min(size, this.#flight);
    this.#flight -= gone;
    this.#r.flight -= gone;
  }

  /** A background message with so many bytes of a request came; says whether it gave a delay sample. */
  onData(now: number, size: number, t: Stamp): boolean {
    const r = this.#r;
    this.onGone(size);
    let sampled = false;
    if (this.#highest === undefined || ((t.sequence - this.#highest) | 0) > 0) {
      this.#highest = t.sequence;
      const rtt = (now - t.echo) | 0;
      if (t.echoes && rtt > 0 && rtt <= mostRtt) {
        this.#delays.sample(now, rtt, (now - t.sentAt) >>> 0);
        sampled = true;
      }
    }
    r.lastAt = now;
    r.look(now);
    const used = r.used(now, size);
    r.ack({ ...r.view, acked: size, limited: used && r.view.limited });
    return sampled;
  }
}
