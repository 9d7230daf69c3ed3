import type { LedbatAck, Stamp } from './ack.ts';
import { Ceiling } from './ceiling.ts';
import {
  besideMost,
  burstTime,
  ceilingIdle,
  div,
  eagerTarget,
  fewPackets,
  fewPart,
  fewTime,
  firstRtt,
  leastRtt,
  maxInterval,
  maxPending,
  messageTime,
  maxMessage as mostMessage,
  mostRtt,
  never,
  packet,
  timeoutMax,
  timeoutMin,
} from './constants.ts';
import { Controller, type Signal } from './controller.ts';
import { Delays } from './delay.ts';
import { Host } from './host.ts';
import { Pending, type Problem } from './pending.ts';
import { Tolerance } from './tolerance.ts';

/** What an ack did: bytes acked and lost, messages acked, µs of its round trip if it gave a sample. */
export interface Outcome {
  acked: number;
  lost: number;
  messages: number;
  rtt: number;
  /** The ack is impossible and nothing was taken from it. */
  problem?: Problem;
}

/** A link: what one packet carries of a message, the largest message (bytes), the base delay from an earlier link (µs). */
export interface PathConfig {
  payload?: number;
  maxMessage?: number;
  base?: number;
}

/** The sending side of a host: the window that all its links share. */
export class Sender extends Host {
  paths: Path[] = [];
  declare bears: Tolerance;
  /** What is sent next waited for the window, not for a timer. */
  held = false;
  /** The earliest moment of the next message, as the last one set it. */
  paced = 0;
  declare ceiling: Ceiling;
  /** Foreground goes out under the controller, or nothing does: the host bears more, as a player waits for it. */
  eager = false;

  override restart(): void {
    super.restart();
    this.bears = new Tolerance();
    this.ceiling = new Ceiling();
  }

  /** The time until the next message, after one of a size, with such a round trip. */
  spacing(size: number, rtt?: number): number {
    this.ceiling.on ||= this.eager;
    return div(size * 1_000_000, Math.max(1, this.ceiling.send(size, this.pacingRate(rtt))));
  }

  /** Notes bytes that the host sends over the same line outside the controller: acknowledgements of its downloads, mostly. */
  beside(now: number, size: number): void {
    const takes = this.ceiling.beside(size);
    if (takes && this.controller.window >= packet)
      this.next = Math.max(this.next, Math.min(Math.max(this.next, now - burstTime) + takes, this.paced + besideMost));
  }

  open(now: number, config: PathConfig = {}): Path {
    return new Path(this, now, config);
  }
}

/** The sending side of one link. */
export class Path {
  #host: Sender;
  #cap = new Controller(false);
  #delays: Delays;
  #pending = new Pending();
  #payload: number;
  #maxMessage: number;
  #limitedAt = -never;
  /** What it has in flight is not on the host's line any more, and is not in the host's flight. */
  #late = false;
  /** Timeouts in a row. */
  #backoff = 0;
  /** The newest ack: when it was sent (receiver's clock), when it came (ours). */
  #ack: { sentAt: number; cameAt: number } | undefined;

  constructor(host: Sender, now: number, { payload, maxMessage, base }: PathConfig) {
    this.#host = host;
    this.#delays = new Delays(now, base);
    this.#maxMessage = maxMessage || mostMessage;
    this.#payload = Math.min(payload || packet, this.#maxMessage);
    host.members.push(this.#delays);
    host.paths.push(this);
  }

  /** Takes the link from the host; what it had in flight no longer counts. */
  close(): void {
    this.#settle(false);
    this.#host.leave(this.#delays, this.#pending.flight);
    this.#host.paths = this.#host.paths.filter((p) => p !== this);
    this.#pending = new Pending();
  }

  /**
   * Forgets what was measured: the packets take another way now. If no other link sends, the host starts anew too. What was in flight
   * counts no more: its acks would open the new window by what the old path carried.
   */
  reset(now: number): void {
    const old = this.#delays;
    this.#delays = new Delays(now);
    this.#giveUp();
    this.#cap = new Controller(false);
    this.#ack = undefined;
    this.#backoff = 0;
    this.#limitedAt = -never;
    this.#host.replace(old, this.#delays, now);
  }

  /** The least round trip; 0 while unknown. */
  get base(): number {
    return this.#delays.base();
  }

  /** Whether a round trip was measured. */
  get measured(): boolean {
    return this.#delays.srtt > 0;
  }

  /** Bytes sent and not heard of. */
  get flight(): number {
    return this.#pending.flight;
  }

  /** Whether it claims a queue that another link did not see. */
  get refuted(): boolean {
    return this.#delays.refuted;
  }

  /** Size of the next message in bytes, header included. Each message wakes both ends; where a queue stands a larger one is a part of it. */
  messageSize(): number {
    const { view, eager } = this.#host;
    const rate = div(this.window() * 1_000_000, Math.max(view.rtt, leastRtt));
    /** How many the host sends in a time, as far as they are no more than a part of the window. */
    const packets = (time: number, part: number) =>
      div(Math.min(div(rate * time, 1_000_000), div(this.window(), part), this.#maxMessage), this.#payload);
    const few = eager ? 1 : packets(Math.min(fewTime, div(3 * view.queuing, 2)), fewPart);
    const n = Math.max(1, Math.min(fewPackets, few), packets(Math.min(messageTime, div(view.target, 4)), 4));
    return (n > 1 ? n - (n % 2) : n) * this.#payload;
  }

  /** What may be in flight on this link alone. */
  window(): number {
    return Math.min(this.#host.controller.window, this.#cap.window);
  }

  /** True: send. Otherwise the moment at which pacing allows it, or 0 while the window is full: then an ack says. */
  maySend(now: number, size: number): true | number {
    const h = this.#host;
    const { window } = h.controller;
    if (this.#late) return 0;
    if (h.flight > 0 && h.flight + size > window) {
      h.limitedAt = now;
      h.held = true;
      // Others may hold acks back: one message tells.
      return this.#pending.flight ? 0 : now < h.lastAt + h.far ? h.lastAt + h.far : true;
    }
    if (this.#pending.flight > 0 && this.#pending.flight + size > this.window()) {
      this.#limitedAt = now;
      return 0;
    }
    if (this.#pending.length >= maxPending) return 0;
    return now < h.next ? h.next : true;
  }

  /** Notes a message that was handed to the channel; `waiting`: bytes of earlier messages still in the local buffer. */
  onSent(now: number, size: number, waiting: number): Stamp {
    const h = this.#host;
    // There was nothing to send: that says nothing of the line.
    if (!h.flight && now - Math.max(h.lastAt, h.next) > Math.max(h.view.rtt, ceilingIdle)) h.ceiling.anew(now);
    h.wake(now);
    const sequence = this.#pending.add(now, size, waiting > size);
    h.flight += size;
    this.#pace(now, size);
    let full = h.flight + size > h.controller.window;
    if (full) {
      h.limitedAt = now;
      h.held = true;
    }
    if (this.#pending.flight + size > this.window()) {
      full = true;
      this.#limitedAt = now;
    }
    const ackNow = full && (this.window() < 8 * this.#payload || 4 * h.view.queuing < h.view.target);
    const echoes = this.#ack !== undefined && waiting <= size;
    const echo = echoes ? (this.#ack!.sentAt + now - this.#ack!.cameAt) >>> 0 : 0;
    return { sequence, sentAt: now >>> 0, echo, echoes, ackNow };
  }

  #pace(now: number, size: number): void {
    const h = this.#host;
    const { srtt } = this.#delays;
    // Its own round trip, while no other link's is shorter by far.
    const spacing = h.spacing(size, srtt ? Math.min(srtt, h.view.rtt) : undefined);
    h.paced = h.next = Math.min(Math.max(h.next, h.held ? now : now - burstTime) + spacing, now + maxInterval);
    h.held = false;
  }

  /** Takes in an ack that came over the link. */
  onAck(now: number, a: LedbatAck): Outcome {
    const h = this.#host;
    const { newest, ...taken } = this.#pending.ack(a);
    const out: Outcome = { ...taken, rtt: 0 };
    if (out.problem) return out;
    if (!this.#late) h.flight -= out.acked + out.lost;
    if (newest) {
      this.#ack = { sentAt: (a.receivedAt + a.hold) >>> 0, cameAt: now };
      const rtt = now - newest.sentAt - a.hold;
      if (!newest.blind && rtt > 0 && rtt <= mostRtt) {
        this.#delays.sample(now, rtt, (a.receivedAt - newest.sentAt) >>> 0);
        out.rtt = rtt;
      }
    }
    if (out.acked + out.lost === 0 && !out.rtt) return out;
    h.lastAt = now;
    h.look(now);
    for (const p of h.paths) p.#settle((p !== this || p.#late) && p.#pending.olderThan(h.far, now));
    if (h.ceiling.on) h.ceiling.hear(now, out.acked, h.leastQueue(now), h.view.rtt);
    const host = { ...h.view, acked: out.acked };
    const own = { ...this.#signal(now), acked: out.acked };
    if (out.lost) {
      h.controller.onLoss(host);
      if (own.queuing > 0) this.#cap.onLoss(own);
    }
    if (out.acked) {
      this.#backoff = 0;
      this.#pending.lastAt = now;
      if (h.eager) host.target = Math.min(host.target, eagerTarget);
      else if (h.controller.state === 'avoidance') host.target = h.bears.of(host, h.controller.window);
      h.ack(host);
      this.#cap.onAck(own);
    }
    return out;
  }

  /** Takes what is in flight out of the host's flight while it is late, and back. */
  #settle(late: boolean): void {
    if (late === this.#late) return;
    this.#late = late;
    this.#host.flight += late ? -this.#pending.flight : this.#pending.flight;
  }

  /** Takes all that is in flight for lost. */
  #giveUp(): void {
    this.#settle(false);
    this.#host.flight -= this.#pending.flight;
    this.#pending.giveUp();
  }

  /** What the link's own cap hears: the delay by which the link is slower than the host's line. */
  #signal(now: number): Signal {
    const d = this.#delays;
    const { srtt: rtt } = d;
    const limited = now - this.#limitedAt <= Math.max(rtt, firstRtt);
    const queuing = Math.max(0, d.queuing() - this.#host.view.queuing);
    return { now, acked: 0, queuing, target: d.target(), base: d.base(), rtt, limited, parts: 1 };
  }

  /** The moment at which `onTimeout` is due if no ack comes before; 0: nothing is in flight. */
  deadline(): number {
    if (this.#pending.flight === 0) return 0;
    const wait =
      Math.max(timeoutMin, 2 * this.#delays.srtt + 4 * this.#delays.rttvar) * 2 ** Math.min(this.#backoff, 3);
    return this.#pending.lastAt + Math.min(wait, timeoutMax);
  }

  /** Called when the deadline has passed: what was in flight counts as lost; SCTP below still brings it. */
  onTimeout(now: number): void {
    const due = this.deadline();
    if (due === 0 || now < due) return;
    const h = this.#host;
    this.#giveUp();
    this.#backoff++;
    h.look(now);
    if (h.flight === 0) h.controller.onTimeout(h.view);
    else h.controller.onLoss(h.view);
    this.#cap.onTimeout(this.#signal(now));
  }
}
