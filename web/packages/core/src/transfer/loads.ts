/** What the player asked for: results, and the origin's part in them. */
import { complete } from '../cache/cache.ts';
import type { ByteRange, Reason, SegmentRef, SegmentResult, Source } from '../ports.ts';
import { pieceLength, pieceSize } from '../segment/index.ts';
import { type Load, reset, type Segment, type Stretch, sourceOf } from './segments.ts';
import { type Shared, sharing } from './shared.ts';

/** Pieces that are not left are taken along between two that are, if they are so few: asking twice takes longer. */
const bridge = 4;

export interface LoadsHost {
  /** All of it came; for a stretch, whether it fits the certificate. */
  fromOrigin(s: Segment, data: Uint8Array, part?: Stretch): Promise<unknown>;
  /** What came of it before it was asked for is the player's; or it came again, as a whole. */
  played(s: Segment): void;
  lost(s: Segment): void;
}

export interface Loads {
  ask(s: Segment, load: Load): void;
  /** Takes a load from its segment; what only that load needed stops. */
  release(s: Segment, load: Load): void;
  /** Hands the pieces to the player, if they are all there and of one certificate. */
  finish(s: Segment): void;
  /** `whole`: nothing less, since it is to measure the line. */
  startOrigin(s: Segment, reason: Reason, whole?: boolean): void;
  stopOrigin(s: Segment): void;
  /** Gives a load its result, which is of a place of the timeline. */
  hand(ref: SegmentRef, load: Pick<Load, 'request' | 'resolve' | 'startedMs' | 'part'>, result: SegmentResult): void;
  /** The origin failed and no peer can help: its error is the player's. */
  giveUp(s: Segment): void;
}

export const createLoads = (shared: Shared, { fromOrigin, played, lost }: LoadsHost): Loads => {
  const { clock, stats, line, segments, cache, credit, nowUs, emit, settled, changed } = shared;
  const cancel = (s: Segment) => shared.peers.cancel(s);
  const flying = (s: Segment, n: number) => shared.peers.all().some((p) => p.supply.downloads.find(s.id, n));

  const settle = (
    s: Segment,
    data: () => ArrayBuffer,
    bytes: Record<Source, number>,
    status?: number,
    crowded?: boolean,
  ) => {
    const { origin, seed } = bytes;
    played(s);
    const source = sourceOf(bytes);
    const reason = origin ? s.originReason : seed ? (s.pieceReason ?? 'no-holder') : undefined;
    for (const load of [...s.loads]) {
      s.loads.delete(load);
      const result: SegmentResult = { data: data(), source, reason, bytes, status, crowded };
      if (!status) result.version = s.certificate;
      stats.segment(source, reason);
      hand(s.ref, load, result);
    }
  };

  const hand: Loads['hand'] = ({ url, startMs, durationMs }, load, result) => {
    load.resolve(result);
    if (load.part) return;
    const { data: _, ...rest } = result;
    const tookMs = clock.now() - load.startedMs;
    emit('segment', { url, startMs, durationMs, rendition: load.request.rendition, result: rest, tookMs });
  };

  const finish = (s: Segment) => {
    const entry = cache.get(s.id);
    if (!complete(entry) || !s.loads.size) return;
    stopOrigin(s);
    const { data, pieces } = entry!;
    const bytes = { origin: 0, seed: 0, peer: 0 };
    for (let n = 0; n < pieces; n++) bytes[s.sources[n] ?? 'peer'] += pieceLength(data.length, n);
    for (const load of s.loads) load.onProgress(data.length, data.length);
    const [first] = s.loads;
    if (!bytes.origin) line.byPeers(data.length, clock.now() - first!.startedMs);
    settle(s, () => data.slice().buffer as ArrayBuffer, bytes);
    cancel(s);
  };

  const ask = (s: Segment, load: Load) => {
    // It may have been forgotten since the player asked, and the schedule decides about what is known.
    if (s.id) segments.byId.set(s.id, s);
    if (!s.loads.size) s.askedUs = nowUs();
    s.loads.add(load);
    finish(s);
  };

  const release = (s: Segment, load: Load) => {
    if (!s.loads.delete(load) || s.loads.size) return;
    stopOrigin(s);
    s.origin = 'idle';
    cancel(s);
    shared.peers.announce(s.id);
  };

  const stopOrigin = (s: Segment) => {
    if (s.origin !== 'running') return;
    s.abort?.abort();
    s.abort = undefined;
    s.origin = 'idle';
    stats.add('wasted_bytes', s.originLoaded);
  };

  /**
   * What the origin is asked for where pieces are in hand: those that are neither in hand nor on their way, or that are on
   * their way where there are no others; up to the first gap. Undefined: the whole.
   */
  const stretch = (s: Segment): Stretch | undefined => {
    const held = cache.get(s.id);
    if (!s.certificate || !held?.count || complete(held) || line.wholes || !sharing(shared)) return undefined;
    const open = [...Array(held.pieces).keys()].filter((n) => !cache.has(s.id, n));
    const rest = open.filter((n) => !flying(s, n));
    const left = rest.length ? rest : open;
    const gap = left.findIndex((n, i) => left[i + 1]! > n + 1 + bridge);
    return [left[0]!, left.at(gap)! + 1];
  };

  const startOrigin = (s: Segment, reason: Reason, whole?: boolean) => {
    const load = s.loads.values().next().value;
    if (!load || s.origin === 'running') return;
    const part = whole ? undefined : stretch(s);
    let range: ByteRange | undefined;
    let had = 0;
    if (part) {
      had = cache.get(s.id)!.count * pieceSize;
      const at = (n: number) => (s.ref.range?.first ?? 0) + Math.min(n * pieceSize, s.certificate!.length);
      range = { first: at(part[0]), last: at(part[1]) - 1 };
      shared.peers.outdone(s, part);
    }
    const abort = new AbortController();
    s.abort = abort;
    s.origin = 'running';
    s.originReason = reason;
    s.originLoaded = 0;
    const end = (origin: Segment['origin']) => {
      s.abort = undefined;
      s.origin = origin;
      changed();
    };
    /** A part that does not come, or does not fit, is asked for again, as the whole, which will show whose fault it is. */
    const again = () => {
      end('idle');
      line.wholes = true;
      startOrigin(s, reason);
    };
    const progress = (loaded: number, total: number) => {
      if (s.abort !== abort) return;
      s.originLoaded = loaded;
      for (const l of s.loads) l.onProgress(had + loaded, had + total);
    };
    const fetched = line.fetch(load.request, abort.signal, progress, range);
    settled(
      fetched.then(
        async ({ data, status, crowded, unshared }) => {
          if (s.abort !== abort) return;
          s.unshared = unshared;
          const size = data.byteLength;
          if (part) {
            s.originLoaded = 0;
            const fits = !unshared && (await fromOrigin(s, new Uint8Array(data), part));
            if (fits) stats.played(size);
            else stats.add('wasted_bytes', size);
            if (s.abort !== abort) return;
            if (!fits) return again();
            end('idle');
            // Nothing decides about the rest any more, and no peer brings it.
            if (!sharing(shared)) startOrigin(s, reason);
            return;
          }
          end('idle');
          // The player may transfer its buffer away: what is to be shared is a copy.
          const copy =
            load.part || s.disputed || unshared || !sharing(shared) || !s.id
              ? undefined
              : new Uint8Array(data.slice(0));
          // What comes yet shows whether peers are worth waiting for.
          if (credit.leftMs() === undefined) shared.peers.outdone(s);
          stats.played(size);
          lost(s);
          // A second load at the same time gets a buffer of its own.
          const all = s.loads.size > 1;
          settle(s, () => (all ? data.slice(0) : data), { origin: size, seed: 0, peer: 0 }, status, crowded);
          if (copy) await fromOrigin(s, copy);
        },
        (error) => {
          if (s.abort !== abort) return;
          if (part) return again();
          end('failed');
          line.wholes = false; // that it sends nothing is not about parts
          s.originError = error;
          if (!s.id || shared.stopped) giveUp(s);
        },
      ),
    );
  };

  const giveUp = (s: Segment) => {
    for (const load of [...s.loads]) {
      s.loads.delete(load);
      load.reject(s.originError);
    }
    s.origin = 'idle';
    // A peer that had no certificate may have one when the player tries again.
    if (!s.certificate && s.state !== 'refused') reset(s, 'none');
    cancel(s);
  };

  return { ask, release, finish, startOrigin, stopOrigin, hand, giveUp };
};
