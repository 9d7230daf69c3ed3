/** The player's requests for parts of low-latency streams: from peers, and from the origin what those do not send in time. */

import { joinBytes } from '../certificate/index.ts';
import type { Run } from '../parts/act.ts';
import { due } from '../parts/player.ts';
import { kept, type Piece, turnOf } from '../parts/shelf.ts';
import type { Wanted } from '../parts/state.ts';
import type { Stream } from '../parts/stream.ts';
import type { Loading } from '../playback.ts';
import type {
  ByteRange,
  OriginResult,
  PartRef,
  Reason,
  SegmentRef,
  SegmentRequest,
  SegmentResult,
  Source,
} from '../ports.ts';
import { pieceSize } from '../segment/segment.ts';
import type { Freshness } from './freshness.ts';
import type { Loads } from './loads.ts';
import { sourceOf } from './segments.ts';
import { type Shared, sharing } from './shared.ts';
import { createShortParts } from './shortparts.ts';

/** The stream that a track plays. */
export interface Followed {
  track: string | undefined;
  /** Its playlist. */
  url: string;
  id: string;
  /** Children that the node takes in it. */
  slots: number;
  stream: Stream;
  /** That the player waits for. */
  load?: Waiting | undefined;
  /** Of chunks: how many the last segment had, when the player was given one last, µs, */
  chunks?: number;
  givenUs?: number;
  /** and how long its segments play, ms. */
  lastsMs?: number;
  /** Parents of its trees, as of the part before. */
  lost: number;
  /** Turns of which the origin has sent something else than was signed; */
  differs: Set<number>;
  /** and the comparisons that run. */
  checking: Promise<void>;
  /** The load of a packager's certificate that runs. */
  certifying?: AbortController | undefined;
}

/** A request of the player, as the node's acts have it. */
export interface Waiting {
  request: SegmentRequest;
  /** Its stream, while that is followed. */
  in?: Followed | undefined;
  turn?: number;
  id?: string;
  /** Asks the origin for runs of pieces, or for all: once. */
  fetch(runs?: Run[]): void;
  /** All of the part is here. */
  ready(): Promise<void>;
}

/** A request of the player for a part. */
export interface PartLoad extends Waiting {
  startedMs: number;
  resolve(result: SegmentResult): void;
  reject(error: unknown): void;
  over?: boolean;
  /** The origin was asked for all of it. */
  all?: boolean;
  /** Because what is known of the line is old. */
  looks?: boolean;
  /** The origin's error, which the player gets where peers do not bring the part in time. */
  refusal?: { error: unknown };
  /** All of it, as it came of peers and the origin. */
  pieces?: Piece[];
  aborts: AbortController[];
}

export interface PartLoadsHost {
  /** The ID of what has a name on the site; undefined: it has none. */
  idOf(ref: Pick<SegmentRef, 'url' | 'range'>): Promise<string | undefined>;
  streamUrl(playlist: string, representation?: string): string;
  /** Follows the stream that a request is of, and no other of its track. */
  follow(request: SegmentRequest, url: string, id: string, partUs: number): Followed;
  /** A packager's key is known. */
  packaged(): boolean;
  /** The time by the cluster's clock, ms; less than any time of a stream where that is not known. */
  serverMs(): number;
  freshness: Pick<Freshness, 'dated' | 'looked'>;
  hand: Loads['hand'];
  /** Does something with a stream, if it is still followed. */
  within(f: Followed, what: (stream: Stream, nowUs: number) => void): void;
}

export interface PartLoads {
  load(request: SegmentRequest): Loading;
}

/** How soon the origin answers is taken for, µs, until it is measured. */
const unknownAnswerUs = 100_000;
/** With less time for peers, in parts, they hold back, until there is so much. */
const leastSpare = 1 / 2;
const muchSpare = 3 / 4;
/** Further ahead is as good as never, ms. */
const farMs = 3_600_000;

export const toUs = (ms: number): number => Math.floor(Math.max(-farMs, Math.min(ms, farMs)) * 1000);
/** How long peers can be waited for before the origin has to be asked for a part that plays so long, in parts. */
const spare = ({ line }: Shared, bitrate: number, partMs: number, leftUs: number): number => {
  const originUs = line.timeUs((bitrate * partMs) / 8000);
  return (leftUs - (originUs < 0 ? unknownAnswerUs : originUs) * 1.5) / toUs(partMs) - 1 / 8;
};

/** What is in hand, µs, where so much is left until the playhead gets to a part. Peers hold back where the origin is asked soon: what they push would share the line. */
export const before = (shared: Shared, bitrate: number, partMs: number, leftUs: number): number =>
  spare(shared, bitrate, partMs, leftUs) < leastSpare ? 0 : leftUs;

/** The same behind a part that the player has. */
export const behind = (shared: Shared, bitrate: number, partMs: number, leftUs: number): number =>
  spare(shared, bitrate, partMs, leftUs) >= muchSpare ? leftUs : Math.min(leftUs, toUs(partMs) - 1);

/** What the node is to know of the origin. */
export const originOf = ({ line }: Shared): Pick<Wanted, 'rtt' | 'rate'> => {
  const rtt = line.timeUs(1);
  return { rtt: rtt < 0 ? unknownAnswerUs : rtt, rate: Math.floor((line.estimate() ?? 0) / 8) };
};

/** Has a stream take what the origin sent of a part, from a piece on. */
export const sent = (stream: Stream, nowUs: number, turn: number, bytes: Uint8Array, from = 0): void => {
  for (let i = 0; i * pieceSize < bytes.length; i++)
    stream.origin(nowUs, turn, from + i, bytes.subarray(i * pieceSize, (i + 1) * pieceSize));
};

/** The bytes of a part that is all here, by where they came from. */
export const bytesOf = (pieces: Piece[]): Record<Source, number> => {
  const bytes = { origin: 0, seed: 0, peer: 0 };
  for (const { data, source } of pieces) bytes[source ?? 'origin'] += data!.length;
  return bytes;
};

/** Counts a part that the player was given. */
export const counted = (
  { stats }: Shared,
  f: Followed | undefined,
  source: Source,
  reason: Reason | undefined,
): void => {
  stats.segment(source, reason);
  const { hops, lost } = f?.stream.mesh.trees() ?? { hops: 0, lost: 0 };
  stats.add('parts', { origin: 0, seed: 0, peer: 0, hops, lost: lost - (f?.lost ?? 0), [source]: 1 });
  if (f) f.lost = lost;
};

/** What the player is given, of which so many bytes came from where; of the origin's answer, if that is handed on. */
export const resultOf = (
  { off }: Shared,
  data: ArrayBuffer,
  bytes: Record<Source, number>,
  got?: OriginResult,
): SegmentResult => ({
  data,
  source: sourceOf(bytes),
  reason: bytes.origin + bytes.seed ? (off ?? 'no-holder') : undefined,
  bytes,
  status: got?.status,
  crowded: got?.crowded,
});

/** Bytes of a range; 0: not known. */
const lengthOf = ({ range }: Pick<PartRef, 'range'>): number => (range ? range.last - range.first + 1 : 0);

export const createPartLoads = (shared: Shared, host: PartLoadsHost): PartLoads => {
  const { clock, line, stats, settled } = shared;
  const { idOf, follow, within, freshness, hand } = host;
  const measured = createShortParts(shared);

  /**
   * Nothing is known of the line to choose a rendition by. Pieces are too short to measure it, and peers' say nothing of it: a viewer
   * that took them would stay with the first rendition. What is known for a minute is measured again. An origin that fails shows
   * nothing.
   */
  const unmeasured = ({ request, looks }: PartLoad) =>
    !line.fails() && (looks || (request.adaptive && !line.estimate()));

  const fetch = (l: PartLoad, runs: Run[] = []) => {
    if (l.over) return;
    if (l.refusal) return fail(l, l.refusal.error);
    if (l.all) return;
    l.all = !runs.length || line.wholes || unmeasured(l);
    if (l.all) get(l);
    else for (const run of runs) get(l, run);
  };

  /** The bytes of a run in the resource. */
  const rangeOf = (l: PartLoad, { first, last }: Run): ByteRange => {
    const base = l.request.range?.first ?? 0;
    const { length } = l.in!.stream.shelf.part(l.turn!);
    return { first: base + first * pieceSize, last: base + Math.min((last + 1) * pieceSize, length) - 1 };
  };

  const get = (l: PartLoad, run?: Run) => {
    const abort = new AbortController();
    l.aborts.push(abort);
    const range = run && rangeOf(l, run);
    let firstMs = clock.now();
    let had = 0;
    const look = (loaded: number) => {
      if (!had && loaded > 0) firstMs = clock.now();
      had = loaded;
    };
    const failed = (error: unknown) => {
      if (l.over) return stats.add('wasted_bytes', had);
      // Asked for as the whole, it shows whose fault that is.
      if (run) return fetch(l);
      if (l.pieces) return give(l);
      if (!awaited(l)) return fail(l, error);
      l.refusal = { error };
    };
    const came = (got: OriginResult) => {
      const bytes = got.data.byteLength;
      const misfits = !!range && bytes !== lengthOf({ range });
      if (l.over || misfits) stats.add('wasted_bytes', bytes);
      if (l.over) return;
      if (misfits) {
        line.wholes = true;
        return fetch(l);
      }
      stats.played(bytes);
      if (range) return ran(l, got, run!);
      share(l, got, got.data.slice(0)); // the player may transfer its buffer away
      if (measured(bytes, got.transferMs ?? clock.now() - firstMs)) freshness.looked();
      finish(l, got.data, { origin: bytes, seed: 0, peer: 0 }, got);
    };
    settled(line.fetch(l.request, abort.signal, look, range).then(came, failed));
  };

  /** A run of pieces came. */
  const ran = (l: PartLoad, got: OriginResult, run: Run) => {
    if (!share(l, got, got.data, run.first)) fetch(l);
  };

  /** Has the stream take what the origin sent. False: it may not be shared, and what it is a part of is not put together. */
  const share = (l: PartLoad, { unshared }: OriginResult, data: ArrayBuffer, from?: number): boolean => {
    const f = l.in;
    if (!f || unshared || !sharing(shared)) return false;
    const bytes = new Uint8Array(data);
    within(f, (stream, now) => {
      if (from === undefined) stream.listed(now, l.turn!, l.id!, bytes.length);
      sent(stream, now, l.turn!, bytes, from);
    });
    return true;
  };

  const give = (l: PartLoad) => {
    const pieces = l.pieces!;
    finish(l, joinBytes(...pieces.map(({ data }) => data!)).buffer as ArrayBuffer, bytesOf(pieces));
  };

  const finish = (l: PartLoad, data: ArrayBuffer, bytes: Record<Source, number>, got?: OriginResult) => {
    const { request, in: f } = l;
    const { durationMs, part } = request;
    end(l);
    const result = resultOf(shared, data, bytes, got);
    counted(shared, f, result.source, result.reason);
    hand(request, l, result);
    const last = part!.listed().at(-1);
    const all = last?.sequence === part!.sequence && last.index === part!.index;
    if (!f) return;
    const left = behind(shared, request.bitrate, durationMs, toUs(request.deadlineMs() + durationMs));
    within(f, (stream, now) => stream.buffer(now, left, all));
  };

  /** Whether peers have time to bring all that is missing: the node asks the origin for it when it is due. */
  const awaited = ({ in: f, turn }: PartLoad) =>
    !!f &&
    due(f.stream) < Number.POSITIVE_INFINITY &&
    !f.stream.shelf.part(turn!).pieces.some((p) => p.asked && !p.data);

  const fail = (l: PartLoad, error: unknown) => {
    end(l);
    l.reject(error);
  };

  /** It is not waited for any more. */
  const end = (l: PartLoad) => {
    l.over = true;
    const f = l.in;
    if (f?.load === l) {
      f.load = undefined;
      f.stream.asked = undefined;
    }
    for (const abort of l.aborts) abort.abort();
  };

  const ready = async (l: PartLoad) => {
    const f = l.in!;
    const { pieces } = f.stream.shelf.part(l.turn!);
    // What the origin sent is held against the certificate: pieces of two versions are none of either.
    await f.checking;
    if (l.over) return;
    if (f.differs.has(l.turn!)) return fetch(l);
    l.pieces = pieces;
    // While the line is to be measured, the origin's answer is awaited.
    if (unmeasured(l)) fetch(l);
    else give(l);
  };

  const begin = async (l: PartLoad) => {
    const { request } = l;
    const { part, playlist = '' } = request;
    const url = host.streamUrl(playlist);
    const listed = part!.listed().slice(-kept);
    // Nothing is held back for what does not come.
    const fails = line.fails();
    l.looks =
      request.adaptive && !fails && request.deadlineMs() >= request.durationMs && freshness.dated(request.bitrate);
    if (unmeasured(l)) fetch(l);
    const [ofStream, id, ...ids] = await Promise.all([{ url }, request, ...listed].map(idOf));
    const turn = turnOf(part!.sequence, part!.index);
    if (l.over) return;
    if (!ofStream || !id || turn === undefined || !listed.length || !sharing(shared)) return fetch(l);
    const f = follow(request, url, ofStream, toUs(Math.max(...listed.map((p) => p.durationMs))));
    const other = f.load;
    if (other) {
      // Another player of the page plays the same.
      other.in = undefined;
      other.fetch();
    }
    f.load = l;
    Object.assign(l, { in: f, turn, id });
    within(f, (stream, now) => {
      for (const [i, p] of listed.entries()) {
        const at = turnOf(p.sequence, p.index);
        const named = ids[i];
        if (at !== undefined && named) stream.listed(now, at, named, lengthOf(p));
      }
      const left = toUs(request.deadlineMs());
      // Peers hold back while the line is measured, too.
      const inHand = l.looks ? 0 : before(shared, request.bitrate, request.durationMs, left);
      stream.buffer(now, fails ? Number.POSITIVE_INFINITY : inHand, fails);
      const packaged = !!request.beside && host.packaged();
      stream.ask(now, turn, { ...originOf(shared), deadline: now + left, packaged });
    });
  };

  return {
    load(request) {
      let l!: PartLoad;
      const result = new Promise<SegmentResult>((resolve, reject) => {
        l = {
          request,
          resolve,
          reject,
          startedMs: clock.now(),
          aborts: [],
          fetch: (runs) => fetch(l, runs),
          ready: () => ready(l),
        };
      });
      begin(l).catch((error) => fail(l, error));
      return {
        result,
        abort() {
          if (!l.over) fail(l, new Error('aborted'));
        },
      };
    },
  };
};
