/** What the player asked for: results, and the origin's part in them. */
import { type Cache, complete } from '../cache/cache.ts';
import type { Clock, EngineEvents, Reason, SegmentResult, Source } from '../ports.ts';
import { pieceLength } from '../segment/index.ts';
import type { Stats } from '../stats/stats.ts';
import type { Line } from './line.ts';
import type { Segment } from './segments.ts';

export interface LoadsHost {
  clock: Clock;
  stats: Stats;
  line: Line;
  cache: Cache;
  /** Whether what the origin sends may be shared. */
  sharing(): boolean;
  /** Whether the schedule still runs: a failure may yet be made good by peers. */
  deciding(): boolean;
  /** The segment is no longer asked of peers. */
  cancel(s: Segment): void;
  fromOrigin(s: Segment, data: Uint8Array): void;
  delivered(detail: EngineEvents['segment']): void;
  changed(): void;
}

export interface Loads {
  /** Hands the pieces to the player, if they are all there and of one certificate. */
  finish(s: Segment): void;
  startOrigin(s: Segment, reason: Reason): void;
  stopOrigin(s: Segment): void;
  /** The origin failed and nobody else can help: its error is the player's. */
  giveUp(s: Segment): void;
}

export const createLoads = (host: LoadsHost): Loads => {
  const { clock, stats, line, cache } = host;

  const settle = (
    s: Segment,
    data: () => ArrayBuffer,
    bytes: Record<Source, number>,
    status?: number,
    crowded?: boolean,
  ) => {
    const source: Source = bytes.origin > 0 ? 'origin' : bytes.seed > bytes.peer ? 'seed' : 'peer';
    const reason = bytes.origin > 0 ? s.originReason : bytes.seed > 0 ? (s.pieceReason ?? 'no-holder') : undefined;
    const { url, startMs, durationMs } = s.ref;
    for (const load of [...s.loads]) {
      s.loads.delete(load);
      const result: SegmentResult = { data: data(), source, reason, bytes, status, crowded };
      stats.segment(source, reason);
      const { data: _, ...rest } = result;
      const tookMs = clock.now() - load.startedMs;
      load.resolve(result);
      host.delivered({ url, startMs, durationMs, rendition: load.request.rendition, result: rest, tookMs });
    }
  };

  const finish = (s: Segment) => {
    const entry = cache.get(s.id);
    if (!complete(entry) || !s.loads.size) return;
    stopOrigin(s);
    const { data, pieces } = entry!;
    const bytes = { origin: 0, seed: 0, peer: 0 };
    for (let n = 0; n < pieces; n++) bytes[s.sources[n] ?? 'peer'] += pieceLength(data.length, n);
    for (const load of s.loads) load.onProgress(data.length, data.length);
    settle(s, () => data.slice().buffer as ArrayBuffer, bytes);
    host.cancel(s);
  };

  const stopOrigin = (s: Segment) => {
    if (s.origin !== 'running') return;
    s.abort?.abort();
    s.abort = undefined;
    s.origin = 'idle';
    stats.add('wasted_bytes', s.originLoaded);
  };

  const startOrigin = (s: Segment, reason: Reason) => {
    const load = s.loads.values().next().value;
    if (!load || s.origin === 'running') return;
    const abort = new AbortController();
    s.abort = abort;
    s.origin = 'running';
    s.originReason = reason;
    s.originLoaded = 0;
    const progress = (loaded: number, total: number) => {
      if (s.abort !== abort) return;
      s.originLoaded = loaded;
      for (const l of s.loads) l.onProgress(loaded, total);
    };
    line.fetch(load.request, abort.signal, progress).then(
      ({ data, status, crowded }) => {
        if (s.abort !== abort) return;
        s.abort = undefined;
        s.origin = 'idle';
        const size = data.byteLength;
        // The player may transfer its buffer away: what is to be shared is a copy.
        const copy = s.disputed || !host.sharing() || !s.id ? undefined : new Uint8Array(data.slice(0));
        const held = cache.get(s.id);
        if (held)
          for (let n = 0; n < held.pieces; n++) if (s.sources[n]) stats.add('duplicate_bytes', pieceLength(size, n));
        host.cancel(s);
        stats.played(size);
        // A second load at the same time gets a buffer of its own.
        const all = [...s.loads].length > 1;
        settle(s, () => (all ? data.slice(0) : data), { origin: size, seed: 0, peer: 0 }, status, crowded);
        if (copy) host.fromOrigin(s, copy);
        host.changed();
      },
      (error) => {
        if (s.abort !== abort) return;
        s.abort = undefined;
        s.origin = 'failed';
        s.originError = error;
        if (!s.id || !host.deciding()) giveUp(s);
        host.changed();
      },
    );
  };

  const giveUp = (s: Segment) => {
    for (const load of [...s.loads]) {
      s.loads.delete(load);
      load.reject(s.originError);
    }
    s.origin = 'idle';
    // Who had no certificate may have one when the player tries again.
    if (!s.certificate && s.state !== 'refused') {
      s.state = 'none';
      s.certPeers = [];
      s.certAskedUs = -1;
    }
    host.cancel(s);
  };

  return { finish, startOrigin, stopOrigin, giveUp };
};
