/** What the parts of an engine know of its peers. */
import type { BackgroundLane } from '../background/index.ts';
import type { LinkCloseReason, PeerLink } from '../ports.ts';
import type { Limit } from '../protocol/limits.ts';
import type { Message } from '../protocol/peer.ts';
import type { Download, Downloads } from './downloads.ts';
import type { Holdings } from './holdings.ts';
import type { Meter } from './meter.ts';
import type { Segment, Stretch } from './segments.ts';
import type { Uploads } from './uploads.ts';

/** A link as the part that looks for silence sees it. */
export interface Watched {
  /** Something has come since the last look. */
  came: boolean;
  /** Something is asked for. */
  owed: boolean;
  readonly viewer: boolean;
  /** Looks in a row at which nothing had come; 0: something came. */
  unheard: number;
  /** When the link opened, ms. */
  readonly since: number;
  /** Until when it counts that the tracker has named the peer, ms; and what offers another link to it. */
  namedUntil: number;
  again?: () => void;
}

/** What one peer brings. */
export interface Supply {
  readonly downloads: Downloads;
  readonly meter: Meter;
  /** Up to when its data pay for its silence, µs. */
  dataUs: number;
  /** Nothing is asked of it before, µs; nothing in the background; and when data of that last came. */
  stalledUntilUs: number;
  behindUs: number;
  cameBehindUs: number;
  /** Verified bytes. */
  downloaded: number;
  /** Cancels those downloads that match and are not being checked. */
  cancel(match: (d: Download) => unknown): Download[];
  /** Likewise, since another source is quicker; they are of a segment of so many bytes, played in so many ms. */
  outdone(match: (d: Download) => unknown, length: number, durationMs: number): void;
  /** A piece of it came whole, and is right. */
  brought(): void;
  /** Requests to it ran out of time: a pause, and later a ping whose answer shows that it could have sent. */
  stalled(nowUs: number): void;
}

export interface Peer {
  /** Which peer it is, and by what way. What goes over the link is sent by `createPeer` alone. */
  readonly link: Pick<PeerLink, 'peer' | 'role' | 'wanted' | 'path'>;
  /** What its hello said; before that it is not ready. */
  ready: boolean;
  onDemand: boolean;
  noUpload: boolean;
  /** It speaks of parts. */
  speaksParts: boolean;
  /** Requests that it queues for us. */
  maxRequests: number;
  readonly holdings: Holdings;
  readonly supply: Supply;
  readonly uploads: Uploads;
  /** Bytes sent to it. */
  uploaded: number;
  /** The background of this link, both ways, where both sides have one. */
  lane?: BackgroundLane;
  readonly watched: Watched;
  send(m: Message): void;
  /** Sends what is encoded already. */
  say(bytes: Uint8Array): void;
  /** It says more than it may. */
  overrun(limit: Limit): void;
  /** So many bytes of one message came that nothing asked for. */
  unasked(bytes: number): void;
  ping(nonce?: number): void;
  /** A list of IDs in as many messages as it takes. */
  sendIds(type: 'cancel' | 'promote' | 'reject', ids: number[], reason?: number): void;
  /** Announces what changed, at most every 50 ms; to a seed only what is `whole` of a live stream. */
  announce(segment: string, whole?: boolean): void;
  drop(reason: LinkCloseReason, bye: number, ban?: boolean): void;
}

/** The linked peers. */
export interface Peers {
  readonly byId: Map<string, Peer>;
  all(): Peer[];
  /** Tells what is held of a segment. `whole`: it is of a live stream, and its last piece has come. */
  announce(id: string, whole?: boolean): void;
  /** So many verified bytes of a segment came from a peer, and are of use. */
  received(peer: Peer, bytes: number, segment: string): void;
  /** Takes back what is asked for of a segment. */
  cancel(s: Segment): void;
  /** Likewise the pieces from one to another, since another source is quicker. */
  outdone(s: Segment, part?: Stretch): void;
}
