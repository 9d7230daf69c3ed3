/** The state of a node, and how it decides: which peers may be its parents and its children, and what it tells (spec/parts.md). */

import { fnv1a32, fnvStart } from '../schedule/rank.ts';
import {
  type Config,
  calm,
  leaseTime,
  type Message,
  maxAvoid,
  maxChildren,
  maxPath,
  maxSlots,
  minAvoid,
  none,
  nowhere,
  type Place,
  renewal,
  type Send,
  same,
  tellEvery,
  trial,
} from './place.ts';

export interface Peer {
  places: Place[];
  /** It is no parent: it sent nothing, or refused. */
  parent: Pause;
  /** It is no child: pieces have waited for it. */
  child: Pause;
}

/** For how long a peer is left alone. */
export interface Pause {
  until: number;
  /** Of the last one; 0: it has kept its word since. */
  length: number;
}

export const newPause = (): Pause => ({ until: 0, length: 0 });

/** Begins one, of twice the length of the last. */
export const pause = (p: Pause, now: number, least: number, most: number): void => {
  p.length = Math.min(Math.max(least, 2 * p.length), most);
  p.until = now + p.length;
};

interface Child {
  id: string;
  slots: number;
  until: number;
}

export interface Tree {
  parent?: string | undefined;
  /** On trial, */
  next?: string | undefined;
  /** since then. */
  asked: number;
  /** When the subscription to the parent was made again. */
  renewed: number;
  /** Parts in a row that the parent did not bring in time. */
  missed: number;
  children: Child[];
  told: Place;
  toldAt: number;
  /** When a child last lost its place to a stronger one. */
  displaced: number;
}

export interface Uplink {
  /** Children that the node takes now. */
  slots: number;
  /** When it took fewer. */
  shrunk: number;
  /** Since when no piece has waited, or since it took one more. */
  calm: number;
}

export interface State {
  config: Config;
  peers: Map<string, Peer>;
  /** Of peers, by ID. */
  order: string[];
  trees: Tree[];
  uplink: Uplink;
  /** Certificates come without a parent, so that the node can be a source. */
  sources: boolean;
  /** There is to be one source of all stripes: a source has all of them, and no seed sends certificates. */
  whole?: boolean | undefined;
  /** Parents are told to push nothing. */
  holds: boolean;
  /** Parents of which the node was left without one. */
  lost: number;
  out: Send[];
}

export const newTree = (): Tree => ({
  asked: 0,
  renewed: 0,
  missed: 0,
  children: [],
  told: nowhere,
  toldAt: -tellEvery,
  displaced: -trial,
});

export const send = (m: State, to: string, message: Message): void => {
  m.out.push({ to, ...message });
};

export const avoid = (p: Peer, now: number): void => pause(p.parent, now, minAvoid, maxAvoid);

/** Gives up the parent of a stripe. */
export const drop = (m: State, stripe: number): void => {
  const t = m.trees[stripe]!;
  send(m, t.parent!, { type: 'unsubscribe', stripe });
  orphaned(m, t);
};

/** A stripe has lost its parent: its tree is to be repaired. */
export const orphaned = (m: State, t: Tree): void => {
  t.parent = undefined;
  t.missed = 0;
  m.lost++;
};

/** The rank of a node as the source of a stripe. */
export const ownRank = ({ config, uplink, whole }: State, stripe: number): number =>
  whole ? sourceRank(config.self, 0, config.slots) : sourceRank(config.self, stripe, uplink.slots);

/** The rank of a viewer as the source of a stripe: the more slots the lower, ties by a hash. */
export const sourceRank = (id: string, stripe: number, slots: number): number => {
  const hash = fnv1a32(fnv1a32(fnvStart, id), `0${stripe.toString(16)}`.slice(-2)) >>> 0;
  return (1 + maxSlots - Math.min(slots, maxSlots)) * 2 ** 32 + hash;
};

/** Where the node stands in the tree of a stripe. */
export const placeOf = (m: State, stripe: number): Place => {
  const { self, seed } = m.config;
  const { parent, children } = m.trees[stripe]!;
  let rank = 0;
  let path = [self];
  if (parent !== undefined && !seed) {
    const above = m.peers.get(parent)!.places[stripe]!;
    rank = above.rank;
    path = [...above.path, self];
  } else if (!seed) {
    if (!m.sources) return nowhere;
    rank = ownRank(m, stripe);
  }
  const room = path.length < maxPath ? Math.min(roomOf(m, stripe), maxSlots) : 0;
  return { rank, path, room, least: Math.min(maxSlots, ...children.map((c) => c.slots)) };
};

/** How many children the node has, of all stripes together. */
export const fed = (m: State): number => m.trees.reduce((sum, t) => sum + t.children.length, 0);

/** Has the node take one more child if it has all that it takes, and no piece has waited for a while. */
export const grow = (m: State, now: number): void => {
  const u = m.uplink;
  if (u.slots >= m.config.slots || fed(m) !== u.slots || now - u.calm < calm) return;
  u.slots++;
  u.calm = now;
};

/** How many further children the node takes in a stripe. */
const roomOf = (m: State, stripe: number): number => {
  const { perStripe } = m.config;
  const left = m.uplink.slots - fed(m);
  return Math.max(0, perStripe ? Math.min(left, perStripe - m.trees[stripe]!.children.length) : left);
};

/** Whether a peer with such a place can be a parent: it is fed, not by this node, and the path has room for one more. */
export const feeds = (m: State, p: Place): boolean =>
  p.rank !== none && p.path.length < maxPath && !p.path.includes(m.config.self);

/** Whether a subscriber takes the place of a child: it passes on to more than twice as many. */
const outranks = (slots: number, least: number): boolean => slots > 2 * least + 1;

/** Answers a subscription. */
export const admit = (m: State, now: number, stripe: number, from: string, claimed: number): void => {
  const t = m.trees[stripe]!;
  const slots = Math.min(claimed, maxChildren);
  const until = now + leaseTime;
  const known = t.children.find((c) => c.id === from);
  if (known) {
    known.slots = slots;
    known.until = until;
    return;
  }
  const p = placeOf(m, stripe);
  const weak = p.room === 0 ? weakest(t.children) : undefined;
  const displaces = weak && outranks(slots, weak.slots) && now - t.displaced >= trial;
  const apart = m.peers.get(from)!.child.until > now || p.path.includes(from);
  if (apart || p.rank === none || p.path.length >= maxPath || (p.room === 0 && !displaces)) {
    send(m, from, { type: 'end', stripe });
    return;
  }
  if (weak) {
    t.displaced = now;
    send(m, weak.id, { type: 'end', stripe });
    t.children.splice(t.children.indexOf(weak), 1);
  }
  t.children.push({ id: from, slots, until });
};

/** The child that passes on to the fewest; the latest of several. */
const weakest = (children: Child[]): Child | undefined => {
  let weak = children[0];
  for (const c of children) if (c.slots <= weak!.slots) weak = c;
  return weak;
};

const subscribe = (m: State, to: string, stripe: number): void =>
  send(m, to, { type: 'subscribe', stripe, slots: Math.min(m.uplink.slots, maxSlots) });

/** Ends leases that have run out and trials that brought nothing. A peer that was not to bring anything is not avoided. */
export const expire = (m: State, now: number, stripe: number): void => {
  const t = m.trees[stripe]!;
  t.children = t.children.filter((c) => {
    if (c.until <= now) send(m, c.id, { type: 'end', stripe });
    return c.until > now;
  });
  if (t.next !== undefined && (m.holds || now - t.asked >= trial)) {
    if (!m.holds) avoid(m.peers.get(t.next)!, now);
    send(m, t.next, { type: 'unsubscribe', stripe });
    t.next = undefined;
  }
  if (t.parent !== undefined && now - t.renewed >= renewal) {
    t.renewed = now;
    m.peers.get(t.parent)!.parent.length = 0; // it has kept its word for as long
    subscribe(m, t.parent, stripe);
  }
};

/** Subscribes to the best peer that is better than what the node has. The parent stays until the new one has sent something. */
export const seek = (m: State, now: number, stripe: number): void => {
  const t = m.trees[stripe]!;
  // The source is to be the same that it would be.
  if (m.whole && m.sources && placeOf(m, stripe).rank > ownRank(m, stripe)) drop(m, stripe);
  if (t.next !== undefined || m.holds) return;
  // While the parent misses parts, another one of the same tree is as good.
  const best = candidate(m, now, stripe, placeOf(m, stripe).rank + (t.missed > 0 ? 1 : 0));
  if (best === undefined) return;
  t.next = best;
  t.asked = now;
  subscribe(m, best, stripe);
};

/** The best peer that can be the parent of a stripe and whose rank is below a bound. */
export const candidate = (m: State, now: number, stripe: number, below: number): string | undefined => {
  let best: string | undefined;
  let at = nowhere;
  for (const id of m.order) {
    const { places, parent } = m.peers.get(id)!;
    const place = places[stripe]!;
    if (place.rank >= below || parent.until > now || id === m.trees[stripe]!.parent || !feeds(m, place)) continue;
    if (place.room === 0 && !outranks(m.uplink.slots, place.least)) continue;
    if (!better(place, at)) continue;
    best = id;
    at = place;
  }
  return best;
};

/** Compares two peers that could be the parent: the tree of the lower rank, the shorter path, the one with more room. Of two that are alike the first one, of the lower ID, stays. */
const better = (p: Place, q: Place): boolean =>
  (p.rank - q.rank || p.path.length - q.path.length || q.room - p.room) < 0;

/** Announces a place that has changed to all peers, but not too often. */
export const tell = (m: State, now: number, stripe: number): void => {
  const t = m.trees[stripe]!;
  const place = placeOf(m, stripe);
  if (same(place, t.told) || now - t.toldAt < tellEvery) return;
  t.told = place;
  t.toldAt = now;
  for (const id of m.order) send(m, id, { type: 'place', stripe, ...place });
};
