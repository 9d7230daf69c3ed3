import type { Background, BackgroundLane } from '../background/index.ts';
import type { Clock, LinkCloseReason, PeerLink } from '../ports.ts';
import type { HaveEntry, Message } from '../protocol/peer.ts';
import type { Download, Downloads } from './downloads.ts';
import type { Holdings } from './holdings.ts';
import type { Meter } from './meter.ts';
import type { Watched } from './silence.ts';
import type { UploadHost, Uploads } from './uploads.ts';

/** What a peer tells its engine. */
export interface PeerHost {
  clock: Clock;
  self(): string;
  swarm: string;
  uploads: Omit<UploadHost, 'reject' | 'nowUs' | 'sent'>;
  /** What paces the uploads of this host, if anything does. */
  background?(): Background;
  sent(peer: Peer, bytes: number, segment: string): void;
  /** What to announce of a segment; undefined: nothing is held, and it was not announced. */
  announcement(segment: string): HaveEntry | undefined;
  held(): Iterable<string>;
  ready(peer: Peer): void;
  closed(peer: Peer, reason: LinkCloseReason, ban: boolean): void;
  /** No peer is to blame for silence. */
  drifted(): boolean;
  /** All bytes of a piece are in. */
  piece(peer: Peer, download: Download): void;
  certificateRequest(peer: Peer, segments: string[]): void;
  certificate(peer: Peer, segment: string, raw: Uint8Array): void;
  certificateNone(peer: Peer, segment: string, reason: number, objectLength: number): void;
  count(name: string, n?: number): void;
  wasted(bytes: number, lane: number): void;
  /** Something happened that the schedule may act on. */
  changed(): void;
}

export interface Peer {
  link: PeerLink;
  ready: boolean;
  onDemand: boolean;
  noUpload: boolean;
  /** Requests that it queues for us. */
  maxRequests: number;
  holdings: Holdings;
  downloads: Downloads;
  uploads: Uploads;
  /** The background of this link, both ways, where both sides have one. */
  lane?: BackgroundLane;
  meter: Meter;
  /** Up to when its data pay for its silence, µs. */
  dataUs: number;
  stalledUntilUs: number;
  /** Nothing is asked of it in the background before, and when data of that last came, µs. */
  behindUs: number;
  cameBehindUs: number;
  /** Verified bytes. */
  downloaded: number;
  uploaded: number;
  readonly watched: Watched;
  /** When its link opened, ms. */
  readonly since: number;
  /** Until when it counts that the tracker has named it, ms; and what offers another link to it. */
  namedUntil: number;
  again?: () => void;
  send(m: Message): void;
  ping(nonce?: number): void;
  /** A list of IDs in as many messages as it takes. */
  sendIds(type: 'cancel' | 'promote' | 'reject', ids: number[], reason?: number): void;
  /** Cancels those downloads that match and are not being checked. */
  cancel(match: (d: Download) => unknown): Download[];
  /** Likewise, since another source is quicker; they are of a segment of so many bytes, played in so many ms. */
  outdone(match: (d: Download) => unknown, length: number, durationMs: number): void;
  /** A piece of it came whole, and is right. */
  brought(): void;
  /** Announces what changed, at most every 50 ms. */
  announce(segment: string): void;
  /** Requests to it ran out of time: a pause, and later a ping whose answer shows that it could have sent. */
  stalled(nowUs: number): void;
  drop(reason: LinkCloseReason, bye: number, ban?: boolean): void;
}
