/** What a node pushes to its children. */

import { pushedId } from '../protocol/parts.ts';
import { keyOf, type Link, type Queued } from './link.ts';
import { backlog, type Part } from './shelf.ts';
import { type Owner, type State, stripeIn } from './state.ts';

/** Pushed pieces that a link has and has not sent. */
const mostHanded = 2;

/** Tells a peer the certificate of a part, once, and returns its push ID. */
const head = (s: State, l: Link, p: Part): number => {
  const key = keyOf(s.id, p.turn);
  const was = l.out.told.get(key);
  if (was !== undefined) return was;
  const push = l.out.tell(key);
  s.owner.say(l.id, { type: 'part', stream: s.id, push, turn: p.turn, certificate: p.content!.raw });
  return push;
};

/** Tells a certificate to those that are to have it at once. */
export const heads = (s: State, p: Part): void => {
  for (const id of s.mesh.allChildren()) {
    const l = s.owner.links.get(id);
    if (l) head(s, l, p);
  }
};

/** A piece waits no more: it has left, or is of no use. */
export const waited = ({ mesh, set }: State, now: number, to: string, { stripe, at }: Queued): void =>
  mesh.waited(now, to, stripe, now - at, set.part);

/** Has a verified piece sent to a child, behind what waits for it. */
export const push = (s: State, now: number, to: string, p: Part, piece: number): void => {
  const l = s.owner.links.get(to);
  if (!l || p.without.has(to) || l.held.has(s.id)) return;
  const id = head(s, l, p);
  if (id < 0) return;
  const { out } = l;
  if (out.waits > backlog)
    for (const q of out.forget((o) => o.stream === s.id && ((o.turn - p.turn) | 0) < 0)) {
      s.owner.counts.shed += q.data.length;
      waited(s, now, to, q);
    }
  const data = p.pieces[piece]!.data!;
  const { segment } = p.content!;
  const stripe = stripeIn(p, piece);
  out.waiting.push({ stream: s.id, turn: p.turn, stripe, segment, request: pushedId(id, piece), data, at: now });
  out.waits += data.length;
  hand(s.owner, l);
};

/** Gives a link what it may have at a time. The rest waits here, where it can be taken back. */
export const hand = (owner: Owner, { id, out }: Link): void => {
  while (out.handed.length < mostHanded && out.waiting.length) {
    const q = out.waiting.shift()!;
    const { request, segment, data } = q;
    out.waits -= data.length;
    // It may be no child any more: what comes two seconds later would be charged.
    if (!owner.streams.get(q.stream)?.mesh.children(q.stripe).includes(id)) continue;
    out.handed.push(q);
    owner.do({ do: 'push', to: id, request, segment, data });
  }
};

/** Takes back what waits of a part for a peer that wants nothing more of it. */
export const enoughOf = (s: State, now: number, l: Link, id: string): void => {
  for (const p of s.shelf.parts.values()) if (p.content?.segment === id) p.without.add(l.id);
  for (const q of l.out.forget((o) => o.stream === s.id && o.segment === id)) waited(s, now, l.id, q);
};
