/** What the owner of a node is to do. */

import type { PartsMessage } from '../protocol/parts.ts';
import type { Part } from './shelf.ts';

/**
 * What peers are blamed for: a piece does not match its digest (the peer is banned); so many bytes of data count as unsolicited; data
 * overlaps or is beyond its piece (`protocol-error`); a piece comes in more messages than it may (`over-limit`); the peer follows more
 * streams than it may (`over-limit`).
 */
export type Why = 'bad-piece' | 'unsolicited' | 'malformed' | 'crumbs' | 'too-much';

/** Asks for the certificate of a part to be parsed and verified: `judged` (arrive.ts) takes the answer. */
export interface Verify {
  do: 'verify';
  from: string;
  stream: string;
  turn: number;
  raw: Uint8Array;
}

/** Asks for the digest of a piece to be compared: `checked` is the answer. */
export interface Check {
  do: 'check';
  /** Undefined: the origin. */
  from: string | undefined;
  stream: string;
  turn: number;
  piece: number;
  data: Uint8Array;
  digest: Uint8Array;
  of: Part;
}

/** A run of pieces, both ends included. */
export interface Run {
  first: number;
  last: number;
}

export type Act =
  /** A control message to send. */
  | { do: 'say'; to: string; message: PartsMessage }
  /** A piece to send as the data of a request with this ID. `sent` is to be called once it has been sent, or will not be. */
  | { do: 'push'; to: string; request: number; segment: string; data: Uint8Array }
  | Verify
  | Check
  /**
   * Asks the origin for runs of pieces of the part that the player waits for, one request each; without runs for the whole part, whose
   * length is not known.
   */
  | { do: 'fetch'; stream: string; turn: number; runs: Run[] }
  /** All of the part that the player waits for has come: `bytes` has it. Or it is a chunk whose segment has been told to end. */
  | { do: 'ready'; stream: string; turn: number }
  /** Asks for the packager's certificate of a part to be loaded and verified: `loaded` is the answer. One load of a stream runs at a time. `of`: of a chunk, or of the end of a segment, what it is loaded by. */
  | { do: 'certificate'; stream: string; turn: number; of?: unknown }
  /** Gives up the load of a certificate that runs: it has missed. */
  | { do: 'give-up'; stream: string }
  /** What a peer did that the owner counts, or ends the link for. Bytes are of `unsolicited`, or of a `bad-piece` that no check was of. */
  | { do: 'blame'; from: string; why: Why; bytes: number };
