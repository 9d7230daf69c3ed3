/** A stream that the node follows. Times are µs. */

import { Mesh } from '../mesh/mesh.ts';
import type { Send } from '../mesh/place.ts';
import { stripes } from '../protocol/parts.ts';
import { pieceCount } from '../segment/segment.ts';
import type { Check } from './act.ts';
import { claims } from './claims.ts';
import { keyOf } from './link.ts';
import { goOn, late, seeded, vouches } from './packager.ts';
import { came, hold, look } from './player.ts';
import { heads, push } from './push.ts';
import { type Content, end, longest, misfits, type Part, Shelf, sameContent, size, turns } from './shelf.ts';
import { all, type Owner, type Packager, type Settings, type State, stripeIn, type Wanted } from './state.ts';

/** Turns, two segments: where the playlist goes on by so much at once, parts of it may never be seen. */
const leap = 512;
/** Parts without a further one in the playlist after which the stream is left. */
const idle = 12;

export class Stream implements State {
  readonly mesh: Mesh;
  readonly shelf = new Shelf();
  readonly holds = new Set<string>();
  readonly signed: Packager = { heard: Number.NEGATIVE_INFINITY, since: 0, misses: 0, again: 0 };
  heard = Number.NEGATIVE_INFINITY;
  asked: State['asked'];
  short = false;
  /** When it is to be left, if the playlist lists nothing more: what peers push would soon be too far ahead of it. */
  idle = Number.POSITIVE_INFINITY;

  constructor(
    readonly owner: Owner,
    readonly id: string,
    readonly set: Settings,
  ) {
    this.mesh = new Mesh({ self: owner.self, stripes, slots: set.slots, whole: set.whole });
  }

  /** Removes a peer from the stream. */
  lost(now: number, id: string): void {
    this.mesh.gone(id);
    this.holds.delete(id);
    for (const p of this.shelf.parts.values()) p.without.delete(id);
    const l = this.owner.links.get(id);
    if (l) {
      l.out.close(this.id);
      for (const stripe of all) l.ends(now, this.id, stripe);
    }
    this.flush(now);
  }

  /** Sends what the mesh wants to say. */
  flush(now: number): void {
    const fed = seeded(this, now);
    this.mesh.canSource(fed || vouches(this, now), this.short, fed);
    this.deliver(now, this.mesh.decide(now));
    hold(this);
  }

  /** Looks what is due. */
  tick(now: number): void {
    look(this, now);
    late(this, now);
    goOn(this, now);
    this.flush(now);
  }

  deliver(now: number, sends: Send[]): void {
    for (const { to, ...m } of sends) {
      const l = this.owner.links.get(to);
      if (!l) continue;
      if (m.type === 'subscribe') l.subscribes(this.id, m.stripe);
      if (m.type === 'unsubscribe') l.ends(now, this.id, m.stripe);
      this.owner.say(to, { ...m, stream: this.id });
    }
  }

  /**
   * The node's own playlist names a part: at a turn, with an ID, and a length in bytes if it says one. A peer's turn is a claim, for the
   * certificate signs the name only. A seed's is believed until the playlist contradicts it. A viewer's waits until the playlist lists
   * the turn, or a seed has told the same: it could take the place of what is true.
   */
  listed(now: number, turn: number, id: string, length: number): void {
    const passes = this.shelf.ahead(turn) < leap;
    this.list(now, turn);
    if (!this.shelf.near(turn)) return;
    let p = this.shelf.part(turn);
    const c = p.content;
    if (c && (c.segment !== id || (length && c.length !== length))) {
      this.contradicted(p);
      p = this.shelf.part(turn);
    }
    p.named = id;
    // Of a longer one nothing is held, whatever the playlist says.
    if (p.length === 0 && length <= longest(turn)) size(p, length);
    claims(this, turn, passes);
    look(this, now);
  }

  private list(now: number, turn: number): void {
    if (!this.shelf.list(turn)) return;
    this.idle = now + idle * (this.set.idle ?? this.set.part);
    this.shelf.evict(this.asked?.turn);
  }

  /**
   * Says what is to be at a turn of a stream of chunks, which no playlist lists: only that is taken there, of viewers, too. `reached`: the
   * player is there.
   */
  expect(now: number, turn: number, fits: (name: string) => boolean, reached: boolean): void {
    if (reached) this.list(now, turn);
    if (!this.shelf.near(turn)) return;
    let p = this.shelf.part(turn);
    p.fits = fits;
    if (p.content && misfits(p, p.content)) {
      this.contradicted(p);
      p = this.shelf.part(turn);
      p.fits = fits;
    }
    claims(this, turn, false);
  }

  /** Forgets a part that peers have told under a turn that is another's. */
  private contradicted({ turn }: Part): void {
    this.shelf.parts.delete(turn);
    const same = (o: { stream: string; turn: number }) => o.stream === this.id && o.turn === turn;
    for (const l of this.owner.links.values()) {
      l.close(same);
      l.out.forget(same);
      l.out.told.delete(keyOf(this.id, turn));
    }
  }

  /** Takes a verified certificate, and says whether it is that of the part at its turn. */
  certified(now: number, turn: number, c: Content): boolean {
    if (!this.shelf.near(turn) || c.length > longest(turn) || c.digests.length !== 32 * pieceCount(c.length))
      return false;
    const p = this.shelf.part(turn);
    const known = p.content;
    if (known && !sameContent(known, c)) return false;
    if (misfits(p, c) || (p.length > 0 && p.length !== c.length)) return false;
    if (this.shelf.elsewhere(turn, c.segment)) return false;
    if (c.alg === 2) this.signed.heard = now; // others can be had without a seed, too
    if (known) return true;
    p.content = c;
    const { asked } = this;
    if (asked?.turn === turn && p.fits) asked.at = Math.max(asked.at, now);
    if (p.length === 0) size(p, c.length);
    heads(this, p);
    // There may be no chunk at the turn that the player waits for.
    if (asked && p.fits && turn === asked.turn - (asked.turn % turns) + end)
      this.owner.do({ do: 'ready', stream: this.id, turn: asked.turn });
    for (const [i, pc] of p.pieces.entries()) if (pc.data && !pc.verified) this.check(undefined, p, i, pc.data);
    look(this, now);
    return true;
  }

  check(from: string | undefined, p: Part, piece: number, data: Uint8Array): void {
    const digest = p.content!.digests.subarray(32 * piece, 32 * piece + 32);
    this.owner.do({ do: 'check', from, stream: this.id, turn: p.turn, piece, data, digest, of: p });
  }

  /** Takes the outcome of a check of a part that is still here. */
  checked(now: number, { from, piece, data, of: p }: Check, ok: boolean): void {
    const pc = p.pieces[piece]!;
    if (from !== undefined) {
      if (ok) came(this, from, p, piece); // while it still counts as one that does not lack
      pc.checking--;
    }
    if (ok && !pc.verified) this.accept(now, p, piece, data);
    look(this, now);
    this.flush(now);
  }

  /** Has a verified piece, and pushes it. */
  private accept(now: number, p: Part, i: number, data: Uint8Array): void {
    Object.assign(p.pieces[i]!, { verified: true, data });
    for (const id of this.mesh.children(stripeIn(p, i))) push(this, now, id, p, i);
  }

  /**
   * The player asks for a part that is listed. What it asked for before is not waited for any more. `fetch` says what the origin is to be
   * asked for, at once and later, `ready` that all has come. A part that is not among the latest is the origin's alone.
   */
  ask(now: number, turn: number, wanted: Wanted): void {
    this.asked = undefined;
    if (!this.shelf.near(turn)) {
      this.owner.do({ do: 'fetch', stream: this.id, turn, runs: [] });
      return;
    }
    this.asked = { at: now, ...wanted, turn };
    const p = this.shelf.part(turn);
    p.whole = false;
    for (const pc of p.pieces) pc.asked = false;
    look(this, now);
    this.flush(now);
  }

  /** Takes a piece that the origin sent, verified or not. The length of the part is to be known: `listed` says it. */
  origin(now: number, turn: number, i: number, data: Uint8Array): void {
    const p = this.shelf.parts.get(turn);
    const pc = p?.pieces[i];
    if (!p || !pc) return;
    pc.origin = true;
    if (!pc.verified) {
      pc.data = data;
      if (p.content) this.check(undefined, p, i, data);
    }
    look(this, now);
  }

  /**
   * How much the playhead has in hand, µs, and whether the player has all parts that are listed. While it has little, peers push nothing:
   * what they push would share the line with the bytes that playback waits for.
   */
  buffer(now: number, left: number, all: boolean): void {
    if (left < Math.floor(this.set.part / 4)) this.short = true;
    else if (left >= this.set.part && all) this.short = false;
    look(this, now);
    this.flush(now);
  }
}
