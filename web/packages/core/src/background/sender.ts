import { decodeAck } from '../ledbat/ack.ts';
import { type Path, Sender as SendingHost } from '../ledbat/path.ts';
import { cutSize, encode, pieceSize } from '../protocol/peer.ts';
import { UploadCap } from './cap.ts';
import { backgroundHeader, encodeBackground } from './message.ts';
import type { BackgroundLink, BackgroundSource } from './ports.ts';

/**
 * What one packet carries of a message. A browser does not tell; both WebRTC stacks build packets of 1,191 bytes, less
 * 12 and 20 where messages are interleaved, in multiples of 4. Where they are not, 4 bytes of each packet stay empty.
 */
export const payload = 1156;

/** When a link is tried again whose buffer has no room, µs: nothing says when it has. */
const roomRetry = 2_000;
/** A link keeps its turn for so many round trips, within bounds (µs): a host is to be about one flow. */
const turnTrips = 4;
const turnLeast = 200_000;
const turnMost = 500_000;
/**
 * A turn lasts longer by so much at most, for the piece of the foreground that is half sent: over a thin line several links would else have a
 * part of a piece each, for longer than any of them waits.
 */
const turnPiece = 1_000_000;
/** A link that claims a queue that another did not see: the others have to be heard of before what they said is old. */
const turnRefuted = 50_000;

/** Near: a shorter base delay, µs, is a cable or one machine. What is late there waited for a processor, not for a line. */
const nearBase = 2_000;
/** What is sent outside the controller may leave so many bytes in the link's buffers. The link is looked at again after so many µs. */
const plainRoom = 262_144;
const plainRetry = 20_000;
/** A thread whose alarms are late by more than this in the mean, µs, cannot pace. */
const lateMean = 25_000;
/** One alarm counts for no more, µs: a page that slept for a minute is not a slow one. */
const lateMost = 400_000;

/**
 * What came of an attempt to send, and after how many µs to try again: a message went out; this link has nothing to send, or no room; no link
 * may send; nor may one that has something in flight.
 */
type Attempt = [did: 'sent' | 'held' | 'full' | 'crowd', again: number];
const never = Number.POSITIVE_INFINITY;
const held: Attempt = ['held', never];

const urgent = (lane: SendingLane): boolean => lane.source.urgent?.() === true;

/** The sending side of a host: one budget, shared by its links in turn. */
export class Sender {
  readonly host = new SendingHost();
  readonly cap = new UploadCap();
  sent = 0;
  acked = 0;
  /** By how much alarms were late in the mean, µs. */
  #late = 0;
  /** Links that have something to send or in flight; the first has its turn, until then. */
  #active: SendingLane[] = [];
  #until = 0;

  add(now: number, link: BackgroundLink, source: BackgroundSource, base: number): SendingLane {
    const { maxMessage } = link;
    return new SendingLane(this, link, source, this.host.open(now, { payload, maxMessage, base }));
  }

  /** An alarm was heard so many µs after its time. */
  heard(late: number): void {
    this.#late += (Math.min(late, lateMost) - this.#late) / 8;
  }

  /** Whether this thread is away for so long at a time that what it paces hardly goes out. */
  get late(): boolean {
    return this.#late > lateMean;
  }

  /** Takes a link in that may have something again. */
  wake(lane: SendingLane): void {
    if (!this.#active.includes(lane)) this.#active.push(lane);
  }

  drop(lane: SendingLane): void {
    this.#active = this.#active.filter((l) => l !== lane);
  }

  /** Sends what may go out now, and says after how many µs there may be more. */
  work(now: number): number {
    const waiting = this.#active.filter((lane) => lane.source.waiting());
    this.host.eager = !waiting.length || waiting.some(urgent);
    for (const lane of this.#active) lane.path.onTimeout(now);
    let wait = never;
    for (const lane of this.#active) wait = Math.min(wait, lane.push(now));
    wait = Math.min(wait, this.#serve(now));
    // Last: a thread that was away sends now what has waited for it.
    for (const { source } of this.#active) wait = Math.min(wait, source.shed?.() ?? never);
    this.#active = this.#active.filter((lane) => {
      const at = lane.path.deadline();
      if (at) wait = Math.min(wait, at - now);
      return !lane.closed && (at || lane.source.waiting());
    });
    return wait;
  }

  /** Sends from the link that has its turn, and from the others in their order what that one leaves room for. */
  #serve(now: number): number {
    for (;;) {
      this.#rotate(now);
      let wait = never;
      let sent = false;
      let crowd = false;
      for (const lane of this.#order()) {
        // Only a link with nothing in flight may learn whether others hold their acks back.
        if (crowd && lane.path.flight) continue;
        const [did, again] = lane.send(now);
        wait = Math.min(wait, again);
        if (did === 'full') return wait;
        crowd ||= did === 'crowd';
        sent = did === 'sent';
        if (sent) break;
      }
      if (!sent) return wait;
    }
  }

  /** Foreground does not wait for its turn. */
  #order(): SendingLane[] {
    if (!this.#active.some(urgent)) return this.#active; // as for nearly every message: nothing is copied
    return [...this.#active].sort((a, b) => +urgent(b) - +urgent(a));
  }

  /**
   * Gives the turn to the next link when it is time, or when the one that has it has nothing to send; with every message
   * where the controller empties the line.
   */
  #rotate(now: number): void {
    const { state } = this.host.controller;
    // The host has no queue: every link is to see its base.
    const each = state === 'slow-start' || state === 'slowdown';
    if (each) this.#until = now;
    for (let n = this.#active.length; n > 0; n--) {
      const { source, path } = this.#active[0]!;
      const stays = !each && !path.refuted && now < this.#until + turnPiece && source.midway?.();
      if ((now < this.#until || stays) && source.waiting()) return;
      this.#active.push(this.#active.shift()!);
      this.#until =
        now +
        (this.#active[0]!.path.refuted
          ? turnRefuted
          : Math.min(Math.max(turnTrips * this.host.view.rtt, turnLeast), turnMost));
    }
  }
}

/** The sending side of one link. */
export class SendingLane {
  readonly source: BackgroundSource;
  readonly path: Path;
  closed = false;
  #sender: Sender;
  #link: BackgroundLink;

  constructor(sender: Sender, link: BackgroundLink, source: BackgroundSource, path: Path) {
    this.source = source;
    this.path = path;
    this.#sender = sender;
    this.#link = link;
  }

  /** It may have something again. */
  wake(): void {
    this.#sender.wake(this);
  }

  /** A message of the ack channel; false: it is none, or says what cannot be. */
  ack(now: number, message: Uint8Array): boolean {
    const ack = decodeAck(message);
    if (!ack) return false;
    if (this.closed) return true;
    const { acked, problem } = this.path.onAck(now, ack);
    this.#sender.acked += acked;
    return !problem;
  }

  /** Foreground goes out over it outside the controller. */
  get #free(): boolean {
    const { base } = this.path;
    return urgent(this) && ((base > 0 && base < nearBase) || this.#sender.late);
  }

  /**
   * Sends what is outside the controller as the link's buffers have room; says after how many µs to look again. That alarm also tells
   * whether the thread is still late: without it a thread that was late once would count as late for good.
   */
  push(now: number): number {
    let wait = never;
    while (!this.closed && this.#free) {
      wait = plainRetry;
      const { cap } = this.#sender;
      if (this.#link.waiting() > plainRoom || cap.at() > now) break;
      const part = this.source.next(cutSize(pieceSize, this.#link.maxMessage));
      if (!part) break;
      const message = encode({ type: 'data', sentAt: now >>> 0, ...part });
      if (!this.#link.sendBackground(message)) break;
      cap.sent(now, message.length);
    }
    return wait;
  }

  /** Sends a message if it may. */
  send(now: number): Attempt {
    if (this.closed || !this.source.waiting() || this.#free) return held;
    const { host, cap } = this.#sender;
    if (cap.at() > now) return ['full', cap.at() - now];
    const size = this.path.messageSize();
    const may = this.path.maySend(now, size);
    if (may !== true) {
      if (may) return ['full', may - now]; // pacing is the host's
      return host.flight > 0 && host.flight + size > host.controller.window ? ['crowd', never] : held;
    }
    const waiting = this.#link.waiting();
    if (waiting > Math.max(size, this.#link.maxMessage - size)) return ['held', roomRetry];
    const part = this.source.next(size - backgroundHeader);
    if (!part) return held;
    const bytes = backgroundHeader + part.payload.length;
    this.#sender.sent += bytes;
    cap.sent(now, bytes);
    // One that takes nothing is closing.
    this.#link.sendBackground(encodeBackground(part, this.path.onSent(now, bytes, waiting)));
    return ['sent', never];
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.path.close();
    this.#sender.drop(this);
  }
}
