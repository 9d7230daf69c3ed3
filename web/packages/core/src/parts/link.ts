/** What there is of a peer: what it follows, what it pushes, and what is pushed to it. */

import type { Assembly } from '../protocol/assembly.ts';
import { maxPushId } from '../protocol/parts.ts';
import type { DataMessage } from '../protocol/peer.ts';
import { grace } from './shelf.ts';

/** Pushes of a peer that are remembered. */
export const mostPushes = 64;

export const keyOf = (stream: string, n: number): string => `${stream} ${n}`;

/** One that a peer has announced. */
export interface Push {
  stream: string;
  turn: number;
  id: number;
  /** When it was announced. */
  at: number;
  /** Its certificate is being verified, or waits until its turn is listed; or its data is of no use, and for a while no fault. */
  state: 'judging' | 'good' | 'refused';
  /** Its certificate. */
  raw?: Uint8Array;
  /** Pieces that have come whole. */
  got: Set<number>;
  /** Bytes that came although it is refused. */
  spare: number;
}

/** Data that came ahead of a verified certificate. */
export interface Early {
  push: number;
  /** Kept or not. */
  bytes: number;
  data: DataMessage[];
}

/** A piece that is there in part. */
export interface Opened extends Assembly {
  push: Push;
  piece: number;
}

/** A piece that waits for a child. */
export interface Queued {
  stream: string;
  turn: number;
  stripe: number;
  segment: string;
  request: number;
  data: Uint8Array;
  /** Since when. */
  at: number;
}

/** What is pushed to a peer. */
export class Outgoing {
  /** Push IDs of the latest parts that it was told of, the oldest first; -1: nothing more of it is pushed. */
  readonly told = new Map<string, number>();
  private next = 0;
  waiting: Queued[] = [];
  /** Bytes of `waiting`. */
  waits = 0;
  /** Pieces that were handed over and not sent. */
  handed: Queued[] = [];

  /** Takes back what waits and matches. */
  forget(match: (q: Queued) => boolean): Queued[] {
    const gone: Queued[] = [];
    this.waiting = this.waiting.filter((q) => {
      if (!match(q)) return true;
      gone.push(q);
      this.waits -= q.data.length;
      return false;
    });
    return gone;
  }

  /** Has nothing more pushed of the parts of a stream that either side has left: the peer has it, or takes it no more. */
  close(stream: string): void {
    for (const [key] of this.told) if (key.startsWith(stream)) this.told.set(key, -1);
  }

  /** Notes that a part is told to the peer, and returns its push ID. */
  tell(key: string): number {
    if (this.told.size >= mostPushes) this.told.delete(this.told.keys().next().value!);
    const id = this.next;
    this.next = (this.next + 1) & maxPushId;
    this.told.set(key, id);
    return id;
  }
}

export class Link {
  /** Streams that it follows. */
  readonly follows = new Set<string>();
  /** Of which it wants nothing for now. */
  readonly held = new Set<string>();
  /** Stripes that this node ever subscribed to: until when pieces may come. */
  readonly subscribed = new Map<string, number>();

  /** What it pushes, as it was announced; */
  readonly pushes = new Map<number, Push>();
  early: Early[] = [];
  open: Opened[] = [];

  readonly out = new Outgoing();

  constructor(
    readonly id: string,
    readonly seed: boolean,
  ) {}

  /** Notes a subscription of this node. It lasts until `ends`. */
  subscribes(stream: string, stripe: number): void {
    this.subscribed.set(keyOf(stream, stripe), Number.POSITIVE_INFINITY);
  }

  ends(now: number, stream: string, stripe: number): void {
    const key = keyOf(stream, stripe);
    const until = this.subscribed.get(key)!;
    if (until > now) this.subscribed.set(key, Math.min(until, now + grace));
  }

  /** Whether pieces of a stripe (`keyOf`) may come from the peer, those of any stripe of a stream, or of any stream. */
  sends(now: number, of = ''): boolean {
    return [...this.subscribed].some(([key, until]) => until > now && key.startsWith(of));
  }

  /** Gives up what came of pushes that match. */
  close(match: (u: Push) => boolean): void {
    this.open = this.open.filter((o) => !match(o.push));
    for (const u of this.pushes.values()) if (match(u)) u.state = 'refused';
    this.early = this.early.filter((e) => this.pushes.get(e.push)?.state !== 'refused');
  }
}
