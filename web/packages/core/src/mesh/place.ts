/** What nodes of the trees say of themselves and to each other (spec/parts.md). IDs are hex; times are µs. */

/** How many nodes there may be from a source to a leaf, both included. */
export const maxPath = 8;
/** Bounds what a peer may say of its slots. */
export const maxSlots = 255;
/** Children that a viewer takes at most, of all stripes together. A peer that says more counts as one of as many. */
export const maxChildren = 8;
/** How long a subscription lasts that is not made again, and how often it is. */
export const leaseTime = 8_000_000;
export const renewal = leaseTime / 2;
/** How long a peer that was subscribed to may send nothing. */
export const trial = 1_500_000;
/** How long a peer is avoided that sent nothing or refused: doubled each time. */
export const minAvoid = 2_000_000;
export const maxAvoid = 30_000_000;
/** How often a place is told at most. */
export const tellEvery = 250_000;
/** How long no piece waits before a node takes one more child. */
export const calm = 8_000_000;
/** How long a child is not taken again that pieces have waited for: `calm` at first, doubled each time. */
export const maxApart = 8 * calm;

/** The rank of a node that nothing feeds. */
export const none = Number.MAX_SAFE_INTEGER;

/** What a node says of its place in the tree of one stripe. */
export interface Place {
  /** Of the source at the top of the tree; the lowest is preferred, 0 is a seed. */
  rank: number;
  /** The nodes from the source to this one, both included. */
  path: string[];
  /** Further children that the node takes. */
  room: number;
  /** Slots of the child that has the fewest. */
  least: number;
}

export const nowhere: Place = { rank: none, path: [], room: 0, least: 0 };

export const same = (p: Place, q: Place): boolean =>
  p.rank === q.rank && p.room === q.room && p.least === q.least && `${p.path}` === `${q.path}`;

/** What one peer says to another of one stripe: a message of parts (protocol/parts.ts), but for its stream. */
export type Message =
  | ({ type: 'place'; stripe: number } & Place)
  /** Pieces are to be pushed from now on; so many children the sender takes. */
  | { type: 'subscribe'; stripe: number; slots: number }
  /** No more. */
  | { type: 'unsubscribe'; stripe: number }
  /** A subscription is refused, or over. */
  | { type: 'end'; stripe: number };

/** A message that the caller is to send. */
export type Send = Message & { to: string };

export interface Config {
  self: string;
  /** Number of trees. */
  stripes: number;
  /** Children that the node takes, of all stripes together, while its uplink carries them, */
  slots: number;
  /** and of one stripe; 0: as many. */
  perStripe?: number;
  /** A source has all stripes from the origin, so that there is to be one of all. */
  whole?: boolean | undefined;
  /** The node has every part from the origin, and is rank 0. */
  seed?: boolean;
}
