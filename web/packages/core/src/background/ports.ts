/** What background needs of the links and of the page, and what it is to the engine. */

import type { Host } from '../ledbat/host.ts';
import type { PacingFigures } from '../ports.ts';
import type { DataMessage } from '../protocol/peer.ts';
import type { Part } from './message.ts';

/** What is needed of an open link. */
export interface BackgroundLink {
  /** The largest data message of the agreed plan, bytes. */
  readonly maxMessage: number;
  /** Bytes that wait in the buffers of the data channels: sent, and not yet taken over by SCTP. */
  waiting(): number;
  /** Hands a data message to the emptiest channel, whatever the room; false: the link is closing. */
  sendBackground(message: Uint8Array): boolean;
  /** Hands over a message of the ack channel. */
  sendAck(message: Uint8Array): void;
}

/** What one link has to send under the controller. It is asked only when something can go out. */
export interface BackgroundSource {
  waiting(): boolean;
  /** Gives up what has waited for too long; says after how many µs to look again. */
  shed?(): number;
  /** Foreground is among what waits: it is first of the link's, and the link is before those that have none. */
  urgent?(): boolean;
  /** Whether a piece of the foreground is half sent. */
  midway?(): boolean;
  /** Takes the next part of a piece, of at most n bytes of payload; undefined when nothing waits after all. */
  next(n: number): Part | undefined;
  /** Whether so numbered a request is one of ours, in the background: foreground comes under the controller, too. Left out: all are. */
  ours?(request: number): boolean;
}

/** The background of one link, both ways. */
export interface BackgroundLane {
  /** The source has something again. */
  wake(): void;
  /** A message of the ack channel; false: it is none, or says what cannot be. */
  ack(message: Uint8Array): boolean;
  /** A data message of so many bytes came, in either lane: what acknowledges it has its part of the line. */
  took(size: number): void;
  /** A background message: what it carries; undefined when it came before. Throws Malformed. */
  data(message: Uint8Array): DataMessage | undefined;
  /** So many bytes of payload were asked for over this link. */
  requested(size: number): void;
  /** So many of them will not come in the background: rejected, canceled, promoted. */
  gone(size: number): void;
  /** The link's packets take another way now. */
  reset(): void;
  close(): void;
}

/** The background of a host: one window over all its links. */
export interface Background {
  /** The sending side; bytes of messages, headers included: handed to the channels, and acknowledged. */
  readonly sender: { readonly host: Host; readonly sent: number; readonly acked: number };
  /** What was asked for and has not come. */
  readonly receiver: Host;
  /** Begins to serve an open link; `peer` names the route, for what was known of it before. */
  add(link: BackgroundLink, source: BackgroundSource, peer?: string): BackgroundLane;
  /** Whether another piece may be asked for, over any link; otherwise after how many ms to ask again, unless data come. */
  mayRequest(): true | number;
  /** Bounds what is sent, kbit/s; 0: nothing but the controller does. */
  cap(kbps: number): void;
  /** How sending stands; undefined: nothing was sent since the last time. */
  take(): PacingFigures | undefined;
  stop(): void;
}

/** Calls a function once, when it is time, in a hidden page too; and for a while another one, with each beat of a clock. */
export interface Alarm {
  /** Milliseconds from now; an earlier time that is set already stays, and is when it is set again. Infinity sets nothing. */
  set(ms: number): void;
  /** Has that other function called with what time it was on the clock, ms, every so many ms for half a second. */
  beat?(ms: number): void;
  /** Has it called without a time, behind all that waits for the thread now. */
  queue?(): void;
  stop(): void;
}

/** What tabs of one browser that show the same site know of each other. */
export interface TabsPort {
  /** How many of them there are, this one included. */
  count(): Promise<number>;
  post(message: unknown): void;
  /** Called with what another one posted. */
  onMessage?: (message: unknown) => void;
  close(): void;
}
