/** The parts of a stream that are here. Times are µs. */

import { sameBytes } from '../certificate/certificate.ts';
import { maxLength, pieceCount } from '../segment/segment.ts';

/** How many parts of a stream are held that its playlist lists, the latest, and how many besides that it does not list yet. */
export const kept = 16;
/** How many segments these may be ahead of the playlist. */
export const ahead = 8;
/** The turns of a segment. */
export const turns = 256;
/** The last of them, at which the end of a segment of chunks is told. */
export const end = turns - 1;
/** The longest part that is taken and pushed, bytes. The origin sends longer ones. */
export const maxPart = 3 << 20;
/** The same at a turn: the last one of a segment may be the end of a segment of chunks, of which no pieces are pushed. */
export const longest = (turn: number): number => (turn % turns < turns - 1 ? maxPart : maxLength);
/** How much may wait for a child, and how much of a push that was refused is no fault, bytes. */
export const backlog = 128 << 10;
/** How many streams a peer may follow. */
export const maxStreams = 8;
/** How long pieces are taken after the end of a subscription. */
export const grace = 2_000_000;

/** What a verified certificate says of a part. */
export interface Content {
  segment: string;
  length: number;
  /** SHA-256 of each piece, one after the other. */
  digests: Uint8Array;
  /** The certificate, to pass on. */
  raw: Uint8Array;
  /** 1: a seed has signed it; 2: a packager. */
  alg: number;
  /** Of a stream of chunks: of the segment, with the range of a chunk. */
  name?: string;
}

export const sameContent = (c: Content, d: Content): boolean =>
  c.segment === d.segment && c.length === d.length && sameBytes(c.digests, d.digests);

/** What there is of a piece. */
export interface Piece {
  /** Verified, or of the origin. */
  data?: Uint8Array;
  verified?: boolean;
  /** The player gets the origin's bytes. */
  origin?: boolean;
  /** Of the origin. */
  asked?: boolean;
  /** Copies of peers that are being checked. */
  checking: number;
  /** What the owner knows of where it came from; undefined: the origin. */
  source?: 'seed' | 'peer';
}

/** What there is of a part. */
export interface Part {
  turn: number;
  /** By the own playlist; undefined: not yet. */
  named?: string;
  /** Of a stream of chunks: whether something of this name is to be here. */
  fits?: (name: string) => boolean;
  /** Bytes; 0: not known. */
  length: number;
  /** Undefined: there is no verified certificate. */
  content?: Content;
  pieces: Piece[];
  /** When a peer's last piece came. */
  progress: number;
  /** Peers that want nothing more of it. */
  without: Set<string>;
  /** Certificates that are being verified. */
  judged: Uint8Array[];
  /** The origin was asked for all of it, at an unknown length. */
  whole?: boolean;
  /** Parents were told. */
  enough?: boolean;
  /** How often the packager's certificate of it was asked for. */
  sought: number;
  /** Of a chunk that the origin has sent, or of the end of a segment: what the owner loads the packager's certificate by. */
  beside?: unknown;
  /** Stripes of which the parent was told to have missed it. */
  missed: boolean[];
}

/** Whether nothing has come of a piece, and the origin was not asked for it. */
export const lacks = (p: Piece): boolean => !p.data && !p.checking && !p.asked;

/** Whether something is another than what is to be at the turn of a part. */
export const misfits = ({ named, fits }: Part, { segment, name = '' }: Content): boolean =>
  (named !== undefined && named !== segment) || (!!fits && !fits(name));

/** Notes the length of a part. */
export const size = (p: Part, length: number): void => {
  p.length = length;
  p.pieces = Array.from({ length: pieceCount(length) }, () => ({ checking: 0 }));
};

/** The turn of a part: the number of its segment, and its own number in it; undefined for a number that no turn has. */
export const turnOf = (sequence: number, number: number): number | undefined =>
  sequence >= 0 && number >= 0 && number < turns ? (sequence % 2 ** 24) * turns + number : undefined;

export class Shelf {
  /** By turn. */
  readonly parts = new Map<number, Part>();
  /** The latest turns that the own playlist has named, in order. */
  readonly listed: number[] = [];

  /** Notes the turn of a listed part, and says whether it is the latest. */
  list(turn: number): boolean {
    if (this.listed.length && this.ahead(turn) <= 0) return false;
    this.listed.push(turn);
    if (this.listed.length > kept) this.listed.shift();
    return true;
  }

  /** How far a turn is ahead of the latest listed one. Turns wrap. */
  ahead(turn: number): number {
    return (turn - this.listed.at(-1)!) | 0;
  }

  /** Whether parts of a turn are taken of peers. */
  near(turn: number): boolean {
    if (!this.listed.length) return false;
    const before = this.ahead(turn);
    if (before <= 0) return this.listed.includes(turn);
    if (before > ahead * turns) return false;
    return this.parts.has(turn) || [...this.parts.keys()].filter((t) => this.ahead(t) > 0).length < kept;
  }

  /** Finds or makes a part. */
  part(turn: number): Part {
    let p = this.parts.get(turn);
    if (!p) {
      p = {
        turn,
        length: 0,
        pieces: [],
        progress: Number.NEGATIVE_INFINITY,
        without: new Set(),
        judged: [],
        missed: [],
        sought: 0,
      };
      this.parts.set(turn, p);
    }
    return p;
  }

  /** Drops what is not near, but for the part that the player waits for. */
  evict(asked: number | undefined): void {
    for (const turn of this.parts.keys()) if (!this.near(turn) && turn !== asked) this.parts.delete(turn);
  }

  /** Whether a segment has its place at another turn. */
  elsewhere(turn: number, id: string): boolean {
    return [...this.parts.values()].some((p) => p.turn !== turn && (p.named === id || p.content?.segment === id));
  }

  /** How long a part is whose length is not known: as the longest that is here. The end of a segment of chunks is none. */
  usual(): number {
    return Math.max(0, ...[...this.parts.values()].map((p) => (p.turn % turns === end ? 0 : p.length)));
  }
}
