/**
 * Decides which peer pushes which pieces of a live stream's parts to which: one tree of subscriptions a stripe, and how trees repair
 * themselves (spec/parts.md). It is pure: time is an argument, µs, and what is to be sent is returned.
 */

import { type Config, calm, type Message, maxApart, none, nowhere, type Send } from './place.ts';
import {
  admit,
  avoid,
  candidate,
  drop,
  expire,
  fed,
  feeds,
  grow,
  newPause,
  newTree,
  orphaned,
  ownRank,
  pause,
  placeOf,
  type State,
  seek,
  send,
  tell,
} from './trees.ts';

/** A node's view of the trees of one rendition. */
export class Mesh {
  private readonly state: State;

  constructor(config: Config) {
    const trees = Array.from({ length: config.stripes }, newTree);
    const uplink = { slots: config.slots, shrunk: -calm, calm: 0 };
    this.state = {
      config,
      peers: new Map(),
      order: [],
      trees,
      uplink,
      sources: false,
      whole: config.whole,
      holds: false,
      lost: 0,
      out: [],
    };
  }

  /**
   * Whether certificates reach the node without a parent: only then may it be the source of a tree. And whether it has its parents push
   * nothing for now: no peer is tried meanwhile, since it could not send what ends its trial.
   */
  canSource(can: boolean, holds = false, seeded = false): void {
    this.state.sources = can;
    this.state.whole = !seeded && this.state.config.whole;
    this.state.holds = holds;
  }

  /** Adds a peer, and tells it the node's places. */
  linked(id: string): void {
    const m = this.state;
    if (m.peers.has(id)) return;
    m.peers.set(id, { places: m.trees.map(() => nowhere), parent: newPause(), child: newPause() });
    m.order.push(id);
    m.order.sort();
    m.trees.forEach((_, stripe) => {
      const place = placeOf(m, stripe);
      if (place.rank !== none) send(m, id, { type: 'place', stripe, ...place });
    });
  }

  /** Removes a peer. */
  gone(id: string): void {
    const m = this.state;
    if (!m.peers.delete(id)) return;
    m.order = m.order.filter((o) => o !== id);
    for (const t of m.trees) {
      t.children = t.children.filter((c) => c.id !== id);
      if (t.parent === id) orphaned(m, t);
      if (t.next === id) t.next = undefined;
    }
  }

  /** Takes a message of a peer. What is out of range is ignored: the codec refuses it first. */
  heard(now: number, from: string, message: Message): void {
    const m = this.state;
    const { stripe } = message;
    const t = m.trees[stripe];
    if (!t) return;
    this.linked(from);
    const p = m.peers.get(from)!;
    switch (message.type) {
      case 'place':
        p.places[stripe] = message;
        if (t.parent === from && !feeds(m, message)) drop(m, stripe);
        break;
      case 'subscribe':
        admit(m, now, stripe, from, message.slots);
        break;
      case 'unsubscribe':
        t.children = t.children.filter((c) => c.id !== from);
        break;
      case 'end':
        if (t.next === from) {
          t.next = undefined;
          avoid(p, now);
        }
        if (t.parent === from) {
          orphaned(m, t);
          avoid(p, now);
        }
    }
  }

  /** A verified piece of a stripe came from a peer. */
  arrived(from: string, stripe: number): void {
    const m = this.state;
    const t = m.trees[stripe]!;
    const p = m.peers.get(from);
    if (from === t.parent) {
      t.missed = 0;
    } else if (p && from === t.next && feeds(m, p.places[stripe]!)) {
      // A place that leads to this node by now would not feed it.
      if (t.parent !== undefined) send(m, t.parent, { type: 'unsubscribe', stripe });
      t.parent = from;
      t.next = undefined;
      t.missed = 0;
      t.renewed = t.asked;
    }
  }

  /**
   * The parent of a stripe had not brought its pieces of a part when they were due. After the second part in a row it is the parent
   * no more.
   */
  missed(now: number, stripe: number): void {
    const m = this.state;
    const t = m.trees[stripe]!;
    if (t.parent === undefined || ++t.missed < 2) return;
    avoid(m.peers.get(t.parent)!, now);
    drop(m, stripe);
  }

  /**
   * How long a piece of a stripe has waited for a child until it had left or was of no use any more, and how long a part plays. If that
   * is longer than a child waits, that one goes, for a while, and the node takes no more than are left.
   */
  waited(now: number, to: string, stripe: number, waited: number, part: number): void {
    const m = this.state;
    const u = m.uplink;
    const long = Math.min(awaited(part), part);
    if (2 * waited <= long) return;
    u.calm = now;
    const t = m.trees[stripe]!;
    const left = t.children.filter((c) => c.id !== to);
    if (waited <= long || now - u.shrunk < part || left.length === t.children.length) return;
    u.shrunk = now;
    u.slots = fed(m) - 1;
    if (!u.slots) u.slots = 1;
    else {
      pause(m.peers.get(to)!.child, now, calm, maxApart);
      send(m, to, { type: 'end', stripe });
      t.children = left;
    }
  }

  /** The parent in a stripe: a part's pieces of it are waited for, since a peer sends them that has kept its word before. */
  parent(stripe: number): string | undefined {
    return this.state.trees[stripe]!.parent;
  }

  /**
   * Whether the node is to be the source of a stripe: it takes children and has no parent, and no peer can be one whose tree is preferred
   * to the node's own. It can be the source if certificates reach it.
   */
  leads(now: number, stripe: number): boolean {
    const m = this.state;
    const own = ownRank(m, stripe);
    return m.uplink.slots > 0 && !this.parent(stripe) && candidate(m, now, stripe, own) === undefined;
  }

  /** The peers that pieces of a stripe are pushed to. */
  children(stripe: number): string[] {
    return this.state.trees[stripe]!.children.map((c) => c.id);
  }

  /** The way from the source of a stripe to the node; empty if nothing feeds it. */
  path(stripe: number): string[] {
    return placeOf(this.state, stripe).path;
  }

  /**
   * How often a piece is passed on from the source to the node, in the deepest of its trees (0: it is a source, or is not fed); and how
   * often the node has lost the parent of a stripe. A parent is lost when it misses parts, gives the node up, or is gone.
   */
  trees(): { hops: number; lost: number } {
    const { trees, lost } = this.state;
    return { hops: Math.max(0, ...trees.map((_, stripe) => this.path(stripe).length - 1)), lost };
  }

  /** The peers that push to the node, each once, but for those that are on trial in any stripe. */
  kept(): string[] {
    const { trees } = this.state;
    const all = trees.flatMap(({ parent }) => parent ?? []);
    return [...new Set(all)].filter((id) => !trees.some((t) => t.next === id));
  }

  /** The peers that the node pushes to, each once. */
  allChildren(): string[] {
    return [...new Set(this.state.trees.flatMap((t) => t.children.map((c) => c.id)))];
  }

  /** Ends all subscriptions, either way, and returns what is to be sent. The mesh is of no use afterwards. */
  leave(): Send[] {
    const m = this.state;
    m.trees.forEach(({ parent, next, children }, stripe) => {
      for (const id of [parent, next]) if (id !== undefined) send(m, id, { type: 'unsubscribe', stripe });
      for (const c of children) send(m, c.id, { type: 'end', stripe });
    });
    return m.out;
  }

  /** Looks for parents, ends what has run out, and tells changes. Returns what is to be sent since the last call, in order. */
  decide(now: number): Send[] {
    const m = this.state;
    grow(m, now);
    m.trees.forEach((_, stripe) => {
      expire(m, now, stripe);
      if (!m.config.seed) seek(m, now, stripe);
      tell(m, now, stripe);
    });
    const { out } = m;
    m.out = [];
    return out;
  }
}

/**
 * The stripe of a piece. Each part is cut into runs of pieces, one a stripe. The runs move on by a stripe with turn, which is the
 * number of the segment and the part's number in it, added.
 */
export const stripeOf = (turn: number, piece: number, pieces: number, stripes: number): number =>
  (turn + Math.floor((piece * stripes) / pieces)) % stripes;

/** How long peers are waited for beside a short part, µs: a piece takes as long by a few hops, however short its part is. */
const patience = 400_000;

/** How long a child waits for a piece of a part that plays so long. */
const awaited = (part: number): number => Math.max(Math.floor(part / 2), patience);

/**
 * When the origin is asked for what is missing of a part that the player asks for. Since is when the player asked or, if that was later,
 * when a peer's last piece of the part came; origin is how long the origin takes for what is missing; part is how long a part plays.
 */
export const dueAt = (since: number, deadline: number, origin: number, part: number): number =>
  Math.min(since + awaited(part), deadline - Math.floor((origin * 3) / 2) - Math.floor(part / 8));
