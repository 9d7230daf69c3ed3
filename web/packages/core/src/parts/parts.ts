/**
 * A node's part in low-latency streams (spec/parts.md): which parts it has, which pieces it pushes to which peers, what it takes of them,
 * and when the origin is asked for what the player waits for. It is pure: time is an argument, µs, and what is to be done is returned by
 * `take`. A browser is never a seed.
 */

import type { PartsMessage } from '../protocol/parts.ts';
import type { DataMessage } from '../protocol/peer.ts';
import type { Act, Check } from './act.ts';
import { announced, arrives, type Receiver } from './arrive.ts';
import { Link } from './link.ts';
import { loaded } from './packager.ts';
import { due } from './player.ts';
import { enoughOf, hand, waited } from './push.ts';
import { type Content, grace, maxStreams } from './shelf.ts';
import type { Settings } from './state.ts';
import { Stream } from './stream.ts';

const decideEvery = 100_000;

/** A node's part in all streams that it follows. */
export class Node implements Receiver {
  readonly counts = { shed: 0, dropped: 0 };
  /** By ID. */
  links = new Map<string, Link>();
  /** As they were begun. */
  readonly streams = new Map<string, Stream>();
  readonly left = new Map<string, number>();
  private out: Act[] = [];

  constructor(readonly self: string) {}

  /** Returns what is to be done since the last call, in order. Bytes of it stay unchanged. */
  take(): Act[] {
    const { out } = this;
    this.out = [];
    return out;
  }

  do(act: Act): void {
    this.out.push(act);
  }

  say(to: string, message: PartsMessage): void {
    this.do({ do: 'say', to, message });
  }

  /** Adds a peer that speaks parts: both hellos are there, and say so. */
  linked(id: string, seed: boolean): void {
    if (this.links.has(id)) return;
    // As texts pairs begin with the ID.
    this.links = new Map([...this.links, [id, new Link(id, seed)] as const].sort());
    for (const stream of this.streams.keys()) this.say(id, { type: 'follow', stream, on: true });
  }

  /** Removes a peer. */
  gone(now: number, id: string): void {
    if (!this.links.delete(id)) return;
    for (const s of this.streams.values()) s.lost(now, id);
  }

  /** Begins to follow a stream. What its playlist lists is to be told right behind (`Stream.listed`): nothing is taken before. */
  follow(now: number, id: string, set: Settings): Stream {
    const known = this.streams.get(id);
    if (known) return known;
    const s = new Stream(this, id, set);
    this.streams.set(id, s);
    for (const [to, l] of this.links) {
      this.say(to, { type: 'follow', stream: id, on: true });
      if (l.follows.has(id)) s.mesh.linked(to);
    }
    s.flush(now);
    return s;
  }

  /** Leaves a stream. What is on its way of it is dropped. */
  unfollow(now: number, id: string): void {
    const s = this.streams.get(id);
    if (!s) return;
    s.deliver(now, s.mesh.leave());
    this.streams.delete(id);
    this.left.set(id, now + grace);
    for (const [to, l] of this.links) {
      l.held.delete(id);
      l.out.close(id);
      l.close((u) => u.stream === id);
      this.say(to, { type: 'follow', stream: id, on: false });
    }
  }

  /** Takes a message of parts. Its bytes may be kept. */
  heard(now: number, from: string, m: PartsMessage): void {
    const l = this.links.get(from);
    if (!l) return;
    const s = this.streams.get(m.stream);
    if (m.type === 'follow') this.followed(now, l, m);
    else if (m.type === 'part') announced(this, now, l, m);
    else if (m.type === 'enough') s && enoughOf(s, now, l, m.segment);
    else if (m.type === 'hold') this.hold(l, m);
    else {
      if (m.type === 'end') l.ends(now, m.stream, m.stripe);
      // Any other is about a stream that this side has left.
      if (s && l.follows.has(m.stream)) {
        s.mesh.heard(now, l.id, m);
        s.flush(now);
      }
    }
  }

  /**
   * Has nothing pushed to a peer until it says so, or this node leaves the stream: then the peer forgets that it has said it. It may be on
   * its way then.
   */
  private hold(l: Link, { stream, on }: { stream: string; on: boolean }): void {
    if (!on) {
      l.held.delete(stream);
    } else if (this.streams.has(stream) && l.follows.has(stream)) {
      l.held.add(stream);
      l.out.forget((q) => q.stream === stream);
    }
  }

  /** Notes what a peer follows, also what this node does not: it may later. */
  private followed(now: number, l: Link, { stream, on }: { stream: string; on: boolean }): void {
    const s = this.streams.get(stream);
    if (on && !l.follows.has(stream) && l.follows.size >= maxStreams) {
      this.do({ do: 'blame', from: l.id, why: 'too-much', bytes: 0 });
      return;
    }
    if (on) {
      l.follows.add(stream);
      s?.mesh.linked(l.id);
      s?.flush(now);
    } else {
      l.follows.delete(stream);
      l.held.delete(stream);
      s?.lost(now, l.id);
    }
  }

  /** Takes the data of a pushed piece. The payload is copied. */
  data(now: number, from: string, m: DataMessage): void {
    const l = this.links.get(from);
    if (l) arrives(this, now, l, m);
  }

  /** Takes what came of a certificate that was to be loaded: what it says, if it is verified and the packager's. */
  loaded(now: number, stream: string, turn: number, c?: Content): void {
    const s = this.streams.get(stream);
    if (s?.signed.loading !== turn) return;
    s.signed.loading = undefined;
    loaded(s, now, s.shelf.parts.get(turn), !!c && s.certified(now, turn, c));
    s.flush(now);
  }

  /** Takes the outcome of a `Check`. */
  checked(now: number, c: Check, ok: boolean): void {
    const s = this.streams.get(c.stream);
    if (!ok && c.from !== undefined) this.do({ do: 'blame', from: c.from, why: 'bad-piece', bytes: 0 });
    if (s?.shelf.parts.get(c.turn) === c.of) s!.checked(now, c, ok);
  }

  /** A link has sent the first of the pushed pieces that it has, or has given it up. */
  sent(now: number, to: string): void {
    const l = this.links.get(to);
    const q = l?.out.handed.shift();
    if (!q) return;
    const s = this.streams.get(q.stream);
    if (s) waited(s, now, to, q);
    hand(this, l!);
  }

  /** Looks what is due. It is to be called when `next` says so. */
  tick(now: number): void {
    for (const s of this.streams.values()) s.tick(now);
    for (const [id, until] of this.left) if (until <= now) this.left.delete(id);
  }

  /** When `tick` is to be called, at the latest. */
  next(now: number): number {
    const dues = [...this.streams.values()].map((s) => Math.max(now, due(s)));
    return Math.min(now + decideEvery, ...dues);
  }
}
