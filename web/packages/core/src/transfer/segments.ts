import type { Certificate } from '../certificate/index.ts';
import type { Crypto, ProgressFunction, Reason, SegmentRef, SegmentRequest, SegmentResult, Source } from '../ports.ts';
import { type SiteRules, segmentId } from '../segment/index.ts';

/** One request of the player. */
export interface Load {
  request: SegmentRequest;
  onProgress: ProgressFunction;
  resolve(result: SegmentResult): void;
  reject(error: unknown): void;
  startedMs: number;
  /** It is for a part of what the player asked for. */
  part?: boolean;
  /** Ends what was started for it beside its segment. */
  stop?: () => void;
}

/** Pieces from one number until before another. */
export type Stretch = [from: number, until: number];

/** What the engine knows of one segment. */
export interface Segment {
  id: string;
  name: string;
  ref: SegmentRef;
  rendition: string;
  bitrate: number;
  loads: Set<Load>;
  askedUs: number;
  certificate?: Certificate;
  state: 'none' | 'asked' | 'held' | 'refused';
  certAskedUs: number;
  certHeldUs?: number;
  certPeers: string[];
  /** Certificates that disagree: origin only until a revocation covers the older. */
  disputed?: [Certificate, Certificate];
  /** The origin said that it is not to be stored: what it sends is played, and neither kept nor passed on. */
  unshared?: boolean;
  /** The certificate of before the dispute, and when that began: a peer that got a piece under it may still ask for it. */
  formerly?: { certificate: Certificate; at: number };
  origin: 'idle' | 'running' | 'failed';
  abort?: AbortController;
  originReason: Reason;
  originError?: unknown;
  /** Bytes in from the origin fetch that is running. */
  originLoaded: number;
  /** Length of the object that it is, or is a part of, once that is known to be too long to be shared whole. */
  object?: number;
  /** The virtual segments in which it is shared. */
  parts?: Segment[];
  /** URL of the playlist that named it when the player asked last. */
  playlist?: string;
  /** What the origin sent, until there is a certificate to hold it against. */
  uncertified?: Uint8Array;
  /** Piece number → source of verified pieces. */
  sources: ('origin' | 'seed' | 'peer')[];
  /** Bytes of the pieces that came before the player asked. */
  ahead?: number[];
  /** Reason of the first piece not taken from a viewer. */
  pieceReason?: Reason;
}

export interface Segments {
  byId: Map<string, Segment>;
  /** The name of what the site has. Throws a SiteError for a URL that is none of the site's. */
  nameOf(ref: Pick<SegmentRef, 'url' | 'range'>): string;
  /** The ID of what has this name. */
  idOf(name: string): Promise<string>;
  /** Rejects with a SiteError when the URL is not one of the site's. */
  resolve(ref: SegmentRef, rendition: string, bitrate: number): Promise<Segment>;
  /** Gives up the oldest of what waits for a certificate, down to so many bytes. */
  shed(most: number): void;
  /** Forgets the oldest segments that nothing needs. */
  prune(needed: (s: Segment) => boolean): void;
}

const maxSegments = 1024;
/** Names whose IDs are remembered. */
const maxNames = 2 * maxSegments;

export const newSegment = (id: string, name: string, ref: SegmentRef, rendition: string, bitrate: number): Segment => ({
  id,
  name,
  ref,
  rendition,
  bitrate,
  loads: new Set(),
  askedUs: -1,
  state: 'none',
  certAskedUs: -1,
  certPeers: [],
  origin: 'idle',
  originReason: 'no-holder',
  originLoaded: 0,
  sources: [],
});

/** Lets go of a certificate, and of the peers that were asked for it. */
export const reset = (s: Segment, state: Segment['state']): void => {
  s.certificate = s.certHeldUs = undefined;
  s.state = state;
  s.certPeers = [];
  s.certAskedUs = -1;
};

/** Where most of the bytes came from. */
export const sourceOf = ({ origin, seed, peer }: Record<Source, number>): Source =>
  origin > seed + peer ? 'origin' : seed > peer ? 'seed' : 'peer';

/** Whether the player waits for a segment. */
export const wanted = (s: Segment): boolean => s.loads.size > 0;

/** The segments by ID, and the way from a URL to one. */
export const createSegments = (rules: SiteRules, crypto: Crypto): Segments => {
  const byId = new Map<string, Segment>();
  const ids = new Map<string, string>();
  const nameOf: Segments['nameOf'] = ({ url, range }) => rules.segmentName(rules.key(url), range);
  const idOf = async (name: string) => {
    const id = ids.get(name) ?? (await segmentId(rules.config.name, name, crypto));
    if (ids.size >= maxNames) ids.clear();
    ids.set(name, id);
    return id;
  };
  return {
    byId,
    nameOf,
    idOf,
    async resolve(ref, rendition, bitrate) {
      const name = nameOf(ref);
      const id = await idOf(name);
      let s = byId.get(id);
      if (!s) {
        const { url, range, startMs, durationMs } = ref;
        s = newSegment(id, name, { url, range, startMs, durationMs }, rendition, bitrate);
        byId.set(id, s);
      }
      // A player corrects what its playlist says as it gets to it, and slides a live one.
      s.ref.startMs = ref.startMs;
      return s;
    },
    shed(most) {
      let kept = 0;
      for (const s of [...byId.values()].reverse()) {
        kept += s.uncertified?.length ?? 0;
        if (kept > most) s.uncertified = undefined;
      }
    },
    prune(needed) {
      if (byId.size <= maxSegments) return;
      for (const [id, s] of byId) {
        if (needed(s)) continue;
        byId.delete(id);
        if (byId.size <= maxSegments / 2) return;
      }
    },
  };
};

/** A limit on how many run at once: about eight digests in flight are quickest in every browser. */
export const createLimiter = (most: number) => {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async <T>(f: () => Promise<T>): Promise<T> => {
    if (running >= most) await new Promise<void>((go) => waiting.push(go));
    running++;
    try {
      return await f();
    } finally {
      running--;
      waiting.shift()?.();
    }
  };
};
