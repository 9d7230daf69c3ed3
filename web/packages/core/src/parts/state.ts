/** What the parts of a node know of it and of a stream. */

import { type Mesh, stripeOf } from '../mesh/mesh.ts';
import { type PartsMessage, stripes } from '../protocol/parts.ts';
import type { Act } from './act.ts';
import type { Link } from './link.ts';
import { type Part, type Shelf, turns } from './shelf.ts';

/** Totals since the node was made, bytes. */
export interface Counts {
  /** Waited for a child that did not read, and was dropped. */
  shed: number;
  /** Of peers, and of no use: ahead of its certificate, of a part that was given up, or twice. */
  dropped: number;
}

/** The node, as its streams have it. */
export interface Owner {
  readonly self: string;
  readonly counts: Counts;
  /** By ID. */
  readonly links: Map<string, Link>;
  readonly streams: Map<string, State>;
  do(act: Act): void;
  say(to: string, message: PartsMessage): void;
}

/** Settings of a stream that the node follows. */
export interface Settings {
  /** Children that a viewer takes, of all stripes together, while its uplink carries them. */
  slots: number;
  /** How long a part plays, */
  part: number;
  /** and how long what is listed at a time, where that is less. */
  idle?: number;
  /** Of chunks: the origin sends all stripes, or none. */
  whole?: boolean;
}

/** What the player's request for a part bears. */
export interface Wanted {
  /** When the playhead gets to the part. */
  deadline: number;
  /** To the origin. */
  rtt: number;
  /** Of the origin, bytes/s; 0: not known. */
  rate: number;
  /** A packager's key is known, so its certificates may be loaded. */
  packaged: boolean;
  /** When it is expected, where that is not now. */
  at?: number;
}

/** What is known of the packager's certificates of a stream's parts. */
export interface Packager {
  /** When one came last that counts. */
  heard: number;
  /** The turn of the part whose certificate is being loaded, */
  loading?: number | undefined;
  /** and when that began. */
  since: number;
  /** In a row. */
  misses: number;
  /** Nothing is loaded before. */
  again: number;
}

/** A stream that the node follows. */
export interface State {
  readonly owner: Owner;
  readonly id: string;
  readonly set: Settings;
  readonly mesh: Mesh;
  readonly shelf: Shelf;
  readonly signed: Packager;
  /** When a seed's certificate came last. */
  heard: number;
  /** Peers that were told to push nothing. */
  readonly holds: Set<string>;
  /** The part that the player waits for. */
  asked: (Wanted & { turn: number; at: number }) | undefined;
  /** The buffer is short. */
  short: boolean;
}

/** The stripes. */
export const all = Array.from({ length: stripes }, (_, stripe) => stripe);

/** The tree of a piece. */
export const stripeIn = (p: Part, i: number): number =>
  stripeOf(Math.floor(p.turn / turns) + (p.turn % turns), i, p.pieces.length, stripes);
