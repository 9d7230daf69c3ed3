/** What peers push: announced, waiting for its certificate, put together, and checked. Times are µs. */

import { sameBytes } from '../certificate/certificate.ts';
import { assemble, createAssembly } from '../protocol/assembly.ts';
import { unsolicitedCost } from '../protocol/limits.ts';
import { type PartsMessage, pushed } from '../protocol/parts.ts';
import type { DataMessage } from '../protocol/peer.ts';
import { pieceLength } from '../segment/segment.ts';
import type { Verify } from './act.ts';
import { drop, judging, refuse, unsolicited, verify, waited } from './claims.ts';
import { keyOf, type Link, mostPushes, type Opened, type Push } from './link.ts';
import { came } from './player.ts';
import { backlog, type Content, maxPart, misfits, type Part } from './shelf.ts';
import { type Owner, stripeIn } from './state.ts';
import type { Stream } from './stream.ts';

/** Pushes of a peer whose data may wait to be judged, and how much of it, bytes. */
const mostEarly = 16;
const mostAhead = 4 * backlog;
/** Pieces of a peer that are there in part. */
const mostOpen = 16;

/** The node, as what comes has it. */
export interface Receiver extends Owner {
  readonly streams: Map<string, Stream>;
  /** Streams that the node does not follow any more: until when pieces of them may still come. */
  readonly left: Map<string, number>;
}

/** Takes a push that a peer announces. A peer tells each part once, and only a seed tells those that did not subscribe. */
export const announced = (n: Receiver, now: number, l: Link, m: PartsMessage & { type: 'part' }): void => {
  const { stream, turn, push, certificate: raw } = m;
  const s = n.streams.get(stream);
  const left = !s && n.left.get(stream)! > now;
  const sends = left || (s && (l.seed || l.sends(now, stream)));
  if (l.pushes.has(push) || knows(l, stream, turn) || !sends) {
    unsolicited(n, l, raw.length);
    return;
  }
  const u = announce(now, l, m);
  if (!s?.shelf.near(turn)) {
    if (s?.shelf.listed.length) {
      unsolicited(n, l, raw.length);
      if (!l.seed) u.spare = backlog;
    }
    refuse(n, l, u);
    return;
  }
  u.raw = raw;
  const p = s.shelf.parts.get(turn);
  if (p?.content && sameBytes(p.content.raw, raw)) settle(n, now, l, u, true);
  else if (l.seed || p?.fits || s.shelf.listed.includes(turn)) verify(s, l, u);
};

/** Whether the peer has told a part. It may tell it once more if the first was refused. */
const knows = (l: Link, stream: string, turn: number): boolean => {
  const told = [...l.pushes.values()].filter((u) => u.stream === stream && u.turn === turn);
  return told.length >= 2 || told.some((u) => u.state !== 'refused');
};

const announce = (at: number, l: Link, { stream, turn, push: id }: PartsMessage & { type: 'part' }): Push => {
  if (l.pushes.size >= mostPushes) {
    const [old] = l.pushes.values();
    l.open = l.open.filter((o) => o.push !== old);
    l.pushes.delete(old!.id);
  }
  const u: Push = { stream, turn, id, at, state: 'judging', got: new Set(), spare: 0 };
  l.pushes.set(id, u);
  return u;
};

/** Settles the pushes with a certificate that was verified, or did not verify: those of other peers as well. */
export const judged = (n: Receiver, now: number, v: Verify, c?: Content): void => {
  const s = n.streams.get(v.stream);
  if (!s) return;
  const p = s.shelf.parts.get(v.turn);
  if (p) p.judged = p.judged.filter((raw) => !sameBytes(raw, v.raw));
  const lie = c && p && misfits(p, c);
  const ok = !!c && s.certified(now, v.turn, c);
  judging(n, s.id, (l, u) => {
    if (u.turn === v.turn && sameBytes(u.raw!, v.raw)) settle(n, now, l, u, ok, lie);
  });
  s.flush(now);
};

/** Takes what came of a push while its certificate was verified. */
const settle = (n: Receiver, now: number, l: Link, u: Push, ok: boolean, lie?: boolean): void => {
  if (!ok) {
    refuse(n, l, u, lie);
    return;
  }
  u.state = 'good';
  if (l.seed) n.streams.get(u.stream)!.heard = now;
  for (const m of waited(l, u.id)) take(n, now, l, u, m, u.at);
};

/** Takes the data of a pushed piece. The payload is copied. */
export const arrives = (n: Receiver, now: number, l: Link, m: DataMessage): void => {
  const of = pushed(m.request);
  const u = of && l.pushes.get(of.push);
  if (!of || (!u && !l.sends(now))) unsolicited(n, l, m.payload.length);
  else if (!u || u.state === 'judging') keep(n, l, of.push, m);
  else if (u.state === 'refused') drop(n, l, u, m.payload.length);
  else take(n, now, l, u, m);
};

/** Has data wait until its certificate is verified. A push of which none comes was not to be sent. */
const keep = (n: Receiver, l: Link, push: number, m: DataMessage): void => {
  const bytes = m.payload.length;
  let e = l.early.find((other) => other.push === push);
  if (!e) {
    if (l.early.length === mostEarly) unsolicited(n, l, l.early.shift()!.bytes);
    e = { push, bytes: 0, data: [] };
    l.early.push(e);
  }
  const waits = l.early.flatMap((other) => other.data).reduce((sum, d) => sum + d.payload.length, 0);
  e.bytes += unsolicitedCost(bytes);
  if (e.bytes > maxPart) unsolicited(n, l, bytes);
  else if (waits + bytes > mostAhead || e.data.length >= mostAhead / 1024) n.counts.dropped += bytes;
  else e.data.push({ ...m, payload: m.payload.slice() });
};

/** Takes data of a part whose certificate is verified, by the subscriptions of a time: what waited may have outlived them. */
const take = (n: Receiver, now: number, l: Link, u: Push, m: DataMessage, by = now): void => {
  const { piece } = pushed(m.request)!;
  const s = n.streams.get(u.stream);
  const p = s?.shelf.parts.get(u.turn);
  if (!s || !p?.content) {
    drop(n, l, u, m.payload.length); // on its way when the part was given up
    return;
  }
  if (piece >= p.pieces.length || u.got.has(piece) || !l.sends(by, keyOf(s.id, stripeIn(p, piece)))) {
    unsolicited(n, l, m.payload.length);
    return;
  }
  const o = opened(n, l, u, piece, pieceLength(p.length, piece));
  const why = assemble(o, m);
  if (why) {
    n.do({ do: 'blame', from: l.id, why, bytes: 0 });
    return;
  }
  if (o.received < o.data.length) return;
  l.open = l.open.filter((other) => other !== o);
  u.got.add(piece);
  arrived(n, now, s, l, p, piece, o.data);
};

/** The piece that data is of. An honest peer sends one after the other, and has as many under way as there are channels. */
const opened = (n: Receiver, l: Link, push: Push, piece: number, length: number): Opened => {
  const found = l.open.find((o) => o.push === push && o.piece === piece);
  if (found) return found;
  if (l.open.length === mostOpen) {
    const old = l.open.shift()!;
    unsolicited(n, l, old.received);
  }
  const o: Opened = { push, piece, ...createAssembly(length) };
  l.open.push(o);
  return o;
};

/** Takes a whole piece of a peer. One that is here already proves itself by being the same. */
const arrived = (n: Receiver, now: number, s: Stream, l: Link, p: Part, i: number, data: Uint8Array): void => {
  const pc = p.pieces[i]!;
  p.progress = now;
  if (!pc.verified) {
    pc.checking++;
    s.check(l.id, p, i, data);
    return;
  }
  if (!sameBytes(pc.data!, data)) {
    n.do({ do: 'blame', from: l.id, why: 'bad-piece', bytes: data.length });
    return;
  }
  n.counts.dropped += data.length;
  came(s, l.id, p, i);
  s.flush(now);
};
