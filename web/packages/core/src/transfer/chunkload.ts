/** The player's requests for segments that may still be made (spec/parts.md, "Chunks"): chunk by chunk from peers, else all from the origin. */

import { joinBytes, sameBytes } from '../certificate/index.ts';
import { dueAt } from '../mesh/mesh.ts';
import { goOn, signs } from '../parts/packager.ts';
import { type Content, end, type Part, size, turnOf } from '../parts/shelf.ts';
import { all } from '../parts/state.ts';
import type { Stream } from '../parts/stream.ts';
import type { Loading } from '../playback.ts';
import type { ByteRange, Growing, OriginResult, SegmentRequest, SegmentResult, Source } from '../ports.ts';
import { maxLength, piecesOf } from '../segment/segment.ts';
import { chunkLength } from './boxes.ts';
import {
  before,
  behind,
  bytesOf,
  counted,
  type Followed,
  originOf,
  type PartLoadsHost,
  resultOf,
  sent,
  toUs,
  type Waiting,
} from './partload.ts';
import { sourceOf } from './segments.ts';
import { type Shared, sharing } from './shared.ts';

/** Chunks that a segment is taken to have until one has come to its end. */
const usual = 4;
/** A chunk that plays for less counts as a part that plays so long: a frame would be waited for less long than a link takes. */
const leastMs = 250;

/** A request of the player for a segment. */
interface ChunkLoad extends Waiting {
  in: Followed;
  growing: Growing;
  /** Of the segment. */
  name: string;
  /** Of chunk 0. */
  first: number;
  /** The chunk that comes next, and where it begins. */
  n: number;
  turn: number;
  at: number;
  /** What came of peers, while all of it did. */
  chunks?: Uint8Array[] | undefined;
  bytes: Record<Source, number>;
  startedMs: number;
  resolve(result: SegmentResult): void;
  reject(error: unknown): void;
  over?: boolean;
  /** The origin is asked, and has sent so much. */
  abort?: AbortController;
  /** Its error, which the player gets where peers do not bring the rest in time. */
  refusal?: { error: unknown };
  sent: Uint8Array;
  /** What the player had when the origin was asked, by source, too, and what it has. */
  had: number;
  before?: Record<Source, number>;
  has: number;
  /** Bytes of the origin that the player has of an answer that was not waited for. */
  used: number;
  /** The node is the source, by the packager's certificates of what the origin sends. */
  signs?: boolean;
  /** Whether the end is that of these chunks is being looked at. */
  compares?: boolean;
}

export interface ChunkLoads {
  load(request: SegmentRequest, instead: () => Loading): Loading;
}

/** Bytes behind others, in the same memory where that has room. */
const append = ({ buffer, length }: Uint8Array, bytes: Uint8Array): Uint8Array => {
  const end = length + bytes.length;
  const to =
    end > buffer.byteLength
      ? joinBytes(new Uint8Array(buffer, 0, length), bytes, new Uint8Array(end))
      : new Uint8Array(buffer);
  to.set(bytes, length);
  return to.subarray(0, end);
};

export const createChunkLoads = (shared: Shared, host: PartLoadsHost): ChunkLoads => {
  const { clock, crypto, line, stats, segments, settled } = shared;
  const { idOf, follow, within, hand } = host;

  const chunkMs = ({ in: f, request }: ChunkLoad) => request.durationMs / (f.chunks ?? usual);
  const partMs = (l: ChunkLoad) => Math.max(chunkMs(l), leastMs);
  const leftUs = (l: ChunkLoad) => toUs(l.request.deadlineMs() + l.n * chunkMs(l));
  const contentAt = ({ in: f }: ChunkLoad, turn: number) => f.stream.shelf.parts.get(turn)?.content;
  /** The chunk that begins at a byte, by its name. */
  const begins =
    ({ name }: ChunkLoad, at: number) =>
    (of: string) =>
      of.startsWith(`${name}#${at}-`);
  /** Whether anything behind a turn has been told. */
  const told = ({ shelf }: Stream, turn: number) =>
    [...shelf.parts.values()].some((p) => p.content && ((p.turn - turn) | 0) > 0);
  const isHere = ({ pieces }: Part) => pieces.every((pc) => pc.verified);

  /** Whether all chunks of a segment are in hand. */
  const areHere = (l: ChunkLoad, { length }: Content): boolean => {
    let at = 0;
    for (let turn = l.first; at < length; turn++) {
      const p = l.in.stream.shelf.parts.get(turn);
      if (!p?.content || !begins(l, at)(p.content.name!) || !isHere(p)) return false;
      at += p.length;
    }
    return true;
  };

  /** Gives the player what has come of the chunks that follow, and waits for the next one. */
  const advance = (l: ChunkLoad): void => {
    const { n, in: f } = l;
    for (;;) {
      if (l.over || l.n === end) break;
      const p = f.stream.shelf.parts.get(l.turn);
      if (!p) break;
      if (!p.content && l.signs) size(p, chunkLength(l.sent, l.at));
      else if (!p.content || !p.fits?.(p.content.name!)) break;
      const here = !!p.content && isHere(p);
      if (!p.length || (!here && l.sent.length < l.at + p.length)) break;
      take(l, p, here);
    }
    const last = contentAt(l, l.first + end);
    if (l.over) return;
    // An origin that is asked says itself where the segment ends; one that is slow, or sends nothing, is not waited for.
    if (l.at === last?.length && l.chunks && (!l.abort || l.refusal || l.sent.length < l.at))
      l.compares || settled(compare(l, last));
    // There is no turn for more chunks, or the end is another version's.
    else if (l.n === end || (last && l.at > last.length)) need(l);
    else if (n < l.n && f.load === l) ask(l);
  };

  /** As many bytes as an end says are all of the segment if they have its digests: another version may end where a chunk does. */
  const compare = async (l: ChunkLoad, { digests }: Content): Promise<void> => {
    l.compares = true;
    const data = joinBytes(...l.chunks!);
    const own = await Promise.all(piecesOf(data).map((piece) => crypto.digest(piece)));
    l.compares = false;
    if (l.over) return;
    if (l.at !== data.length) return advance(l);
    if (sameBytes(joinBytes(...own), digests)) return finish(l);
    l.chunks = undefined;
    need(l);
  };

  /** The player has a chunk: of peers, or the origin has given it. */
  const take = (l: ChunkLoad, p: Part, here: boolean): void => {
    const { in: f, turn, at } = l;
    // Before the node hears of it: what it says may go on with the next one.
    l.at += p.length;
    l.turn++;
    l.n++;
    if (here) {
      const data = joinBytes(...p.pieces.map((pc) => pc.data!));
      l.chunks?.push(data);
      const bytes = bytesOf(p.pieces);
      for (const source of ['origin', 'seed', 'peer'] as const) l.bytes[source] += bytes[source];
      if (!l.abort) count(l, sourceOf(bytes));
      // What is beyond, the origin is sending.
      if (at <= l.has) {
        l.growing.give(data, at);
        l.has = Math.max(l.has, l.at);
      }
    } else {
      // It may be of another version: it is not put together with what is verified.
      l.chunks = undefined;
      within(f, (stream, now) => {
        if (!p.content) sign(l, stream, now, p, { first: at, last: l.at - 1 });
        sent(stream, now, turn, l.sent.slice(at, l.at));
      });
    }
    f.givenUs = shared.nowUs();
    if (f.load !== l) return;
    const left = behind(shared, l.request.bitrate, partMs(l), leftUs(l));
    within(f, (stream, now) => stream.buffer(now, left, !told(stream, turn)));
  };

  /** Has the packager's certificate of a chunk that the origin has sent be loaded, or, without a range, that of the segment. */
  const sign = ({ request }: ChunkLoad, stream: Stream, now: number, p: Part, range?: ByteRange) => {
    p.beside = { request: { ...request, range } };
    goOn(stream, now);
  };

  const count = ({ in: f }: ChunkLoad, source: Source) =>
    counted(shared, f, source, source === 'peer' ? undefined : (shared.off ?? 'no-holder'));

  /** Has the node wait for the next chunk. */
  const ask = (l: ChunkLoad): void => {
    let follows = false;
    within(l.in, (stream, now) => {
      follows = true;
      const { turn } = l;
      stream.expect(now, turn, begins(l, l.at), true);
      const left = leftUs(l);
      const fails = line.fails();
      const inHand = before(shared, l.request.bitrate, partMs(l), left);
      stream.buffer(now, fails ? Number.POSITIVE_INFINITY : inHand, fails);
      const expected = told(stream, turn) ? now : Math.max(now, (l.in.givenUs ?? 0) + toUs(chunkMs(l)));
      stream.ask(now, turn, { ...originOf(shared), deadline: now + left, packaged: false, at: expected });
    });
    // It was left since the player asked: for another rendition, or because it was idle.
    if (!follows) l.fetch();
  };

  /** The origin is to send what is missing. One that has failed is not asked again: peers have as long for the chunk as for any. */
  const need = (l: ChunkLoad): void => {
    const { n, refusal } = l;
    if (!l.abort) get(l);
    else if (refusal) {
      const dueUs = dueAt(0, leftUs(l), 0, toUs(partMs(l)));
      clock.setTimer(() => l.over || l.n > n || fail(l, refusal.error), Math.max(0, dueUs / 1000));
    }
  };

  const fail = (l: ChunkLoad, error: unknown): void => {
    stop(l);
    l.reject(error);
  };

  /** Asks the origin for the segment. */
  const get = (l: ChunkLoad): void => {
    const abort = new AbortController();
    l.abort = abort;
    l.had = l.at;
    l.before = { ...l.bytes };
    let loaded = 0;
    l.growing.heard = (bytes, unshared) => {
      if (unshared) l.chunks = undefined;
      if (l.over || unshared || l.sent.length > maxLength) return;
      l.sent = append(l.sent, bytes);
      const { length } = l.sent;
      l.has = Math.max(l.has, length);
      advance(l);
    };
    const came = (got: OriginResult) => {
      if (l.over) return stats.add('wasted_bytes', got.data.byteLength);
      l.sent = new Uint8Array(got.data.slice(0)); // the player may transfer its buffer away
      if (!got.unshared) advance(l);
      if (l.over) return;
      // The origin has it all, and no parent has told the chunk.
      within(l.in, (stream, now) => {
        if (got.unshared) return;
        if (l.at < l.sent.length) for (const stripe of all) stream.mesh.missed(now, stripe);
        else if (l.signs) {
          const turn = l.first + end;
          stream.expect(now, turn, (of) => of === l.name, true);
          sign(l, stream, now, stream.shelf.part(turn));
        }
      });
      finish(l, got);
    };
    const failed = (error: unknown) => {
      stats.add('wasted_bytes', loaded - l.used);
      if (l.over) return;
      // What peers bring goes on where they stand, unless the player has bytes of the origin from there on.
      if (!l.chunks || l.has > l.at || l.in.load !== l) return fail(l, error);
      l.refusal = { error };
      ask(l);
    };
    const look = (n: number) => {
      loaded = n;
    };
    settled(line.fetch(l.request, abort.signal, look).then(came, failed));
  };

  const finish = (l: ChunkLoad, got?: OriginResult): void => {
    const { request, in: f } = l;
    const bytes = (got && l.before) ?? l.bytes;
    stop(l);
    if (got) {
      const size = got.data.byteLength;
      const again = Math.min(size, l.had);
      bytes.origin += size - again;
      stats.played(size - again);
      stats.add('wasted_bytes', again);
      count(l, 'origin');
    } else if (l.before) {
      // What it sent until now is the player's, but for what peers sent, too.
      l.used = bytes.origin - l.before.origin;
      stats.played(l.used);
      count(l, sourceOf(bytes));
    }
    if (l.n && (!got || l.at <= got.data.byteLength)) {
      // The origin may have sent the last ones before they were told.
      f.chunks = got ? Math.round((l.n * got.data.byteLength) / l.at) : l.n;
      Object.assign(f.stream.set, { part: toUs(partMs(l)), idle: toUs(chunkMs(l)) });
    }
    const data = got ? got.data : (joinBytes(...l.chunks!).buffer as ArrayBuffer);
    hand(request, l, resultOf(shared, data, bytes, got));
  };

  /** It is not waited for any more. */
  const stop = (l: ChunkLoad): void => {
    l.over = true;
    if (l.in.load === l) {
      l.in.load = undefined;
      l.in.stream.asked = undefined;
    }
    l.abort?.abort();
  };

  /** Follows the stream of a segment; undefined: peers can have no share in it. */
  const begin = async (request: SegmentRequest): Promise<ChunkLoad | undefined> => {
    const { playlist, representation, startMs, durationMs, range, adaptive, zeroMs } = request;
    // Players take the start from the end: where the timeline began in 1970, a part of a microsecond is lost, and many turns by that.
    const lastsMs = Math.round(durationMs * 1000) / 1000;
    const first = turnOf(Math.floor(startMs / lastsMs + 0.5), 0);
    if (!playlist || representation === undefined || range || first === undefined) return undefined;
    // It is complete: what peers push of later ones would be too far ahead, and charged to them.
    if (zeroMs && host.serverMs() - zeroMs - startMs > durationMs) return undefined;
    const url = host.streamUrl(playlist, representation);
    const [id, known] = await Promise.all([{ url }, request].map(idOf));
    if (!id || !known || !sharing(shared)) return undefined;
    const f = follow(request, url, id, toUs(durationMs / usual));
    // The last one of a period: its turn cannot be told from how long it plays.
    f.lastsMs ??= durationMs;
    if (Math.abs(f.lastsMs - durationMs) > 1) return undefined;
    const name = segments.nameOf(request);
    const l = {
      in: f,
      request,
      growing: request.growing!,
      name,
      first,
      n: 0,
      turn: first,
      at: 0,
      chunks: [],
      had: 0,
      has: 0,
      used: 0,
    };
    const load: ChunkLoad = Object.assign(l, {
      bytes: { origin: 0, seed: 0, peer: 0 },
      sent: new Uint8Array(),
      startedMs: clock.now(),
      resolve() {},
      reject() {},
      async ready() {
        advance(load);
      },
      fetch() {
        advance(load);
        if (!load.over && !load.compares) need(load);
      },
    });
    within(f, (stream, now) => {
      stream.expect(now, first, begins(load, 0), true);
      load.signs = host.packaged() && signs(stream, now, stream.shelf.part(first));
    });
    if (adaptive && !line.estimate()) return undefined;
    // Nothing feeds the node, or what is complete is shared whole.
    if (!load.signs && all.some((stripe) => !f.stream.mesh.path(stripe).length)) return undefined;
    const last = contentAt(load, first + end);
    const over = last || told(f.stream, first + end);
    return over && !(last && areHere(load, last)) ? undefined : load;
  };

  const wait = (l: ChunkLoad): Loading => {
    const result = new Promise<SegmentResult>((resolve, reject) => Object.assign(l, { resolve, reject }));
    const other = l.in.load;
    l.in.load = l;
    within(l.in, (stream, now) => stream.expect(now, l.first + end, (of) => of === l.name, false));
    // Another player of the page plays the same, or this one has asked for more.
    other?.fetch();
    ask(l);
    advance(l);
    return {
      result,
      abort() {
        if (!l.over) fail(l, new Error('aborted'));
      },
    };
  };

  return {
    load(request, instead) {
      let inner: Loading | undefined;
      let aborted = false;
      const begun = async () => {
        const l = await begin(request);
        if (aborted) throw new Error('aborted');
        inner = l ? wait(l) : instead();
        return inner.result;
      };
      return {
        result: begun(),
        abort() {
          aborted = true;
          inner?.abort();
        },
      };
    },
  };
};
