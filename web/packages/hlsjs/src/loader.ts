/**
 * The fragment loader that hls.js makes for every fragment. It wraps the loader that was there before: whatever comes
 * from the origin comes through that one, with its xhrSetup, credentials, CMCD and timeouts.
 */

import {
  type Clock,
  deadlineMs,
  notStored,
  type OriginResult,
  type Playback,
  type SegmentRequest,
  type SegmentResult,
} from '@leeway/core';
import type {
  FragmentContext,
  FragmentLoaderLike,
  HlsConfig,
  HlsLike,
  LoaderCallbacks,
  LoaderConfiguration,
  LoaderConstructor,
  LoaderStats,
} from './hls.ts';
import { bitrateOf, isLive, partsOf, rangeOf, refOf, upcomingOf, zeroOf } from './position.ts';

export interface LoaderContext {
  hls: HlsLike;
  clock: Clock;
  playback(): Playback | undefined;
  caught(where: string, error: unknown): void;
}

/** How often the origin loader's progress is read: as often as hls.js looks at it. */
const progressMs = 100;

/** What the previous loader called instead of onSuccess; handed to hls.js as it was. */
interface OriginFailure {
  /** Calls the same callback of hls.js. */
  tell(callbacks: LoaderCallbacks): void;
}

/**
 * One origin fetch by the previous loader, of the fragment or of what is asked for `instead`. Rejects with an `OriginFailure`, which
 * tells the `shown` stats. The loader is done with then.
 */
function fetchOrigin(
  loader: FragmentLoaderLike,
  shown: LoaderStats,
  clock: Clock,
  context: FragmentContext,
  config: LoaderConfiguration,
  signal: AbortSignal,
  onProgress: (loaded: number, total: number) => void,
  instead?: Partial<FragmentContext>,
): Promise<OriginResult & { details: unknown }> {
  const { stats } = loader;
  /** 0: it does not run. */
  let timer = 0;
  return new Promise<OriginResult & { details: unknown }>((resolve, reject) => {
    const fail = (tell: OriginFailure['tell']) => reject({ tell } satisfies OriginFailure);
    const failAborted = (details: unknown) => fail((c) => c.onAbort?.(shown, context, details));
    const abort = () => {
      if (timer) loader.abort();
      failAborted(null);
    };
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort, { once: true });
    const poll = () => {
      if (stats.loaded > 0) onProgress(stats.loaded, stats.total);
      timer = clock.setTimer(poll, progressMs);
    };
    poll();
    // Copies: CMCD writes its parameters into the context, and the retry of a segment starts from a clean one. Loaders of hls.js write into
    // the configuration which of its times they keep, and do not keep the longer one if another fetch has written that.
    loader.load(
      { ...context, ...instead, headers: { ...context.headers } },
      { ...config },
      {
        onSuccess({ data, code = 200, url }, _stats, _context, details) {
          const bytes = bytesOf(data);
          if (!bytes) return fail((c) => c.onError({ code: 0, text: 'no bytes' }, context, details, shown));
          resolve({
            data: bytes,
            status: code,
            url,
            transferMs: transferMs(stats),
            unshared: notShared(details),
            details,
          });
        },
        onError: (info, _context, details) => fail((c) => c.onError(info, context, details, shown)),
        onTimeout: (_stats, _context, details) => fail((c) => c.onTimeout(shown, context, details)),
        onAbort: (_stats, _context, details) => failAborted(details),
      },
    );
  }).finally(() => {
    clock.clearTimer(timer);
    timer = 0;
    loader.destroy();
  });
}

/** From the first byte to the last, where the loader measured it. */
function transferMs({ loading: { first, end } }: LoaderStats): number | undefined {
  return first > 0 && end >= first ? end - first : undefined;
}

/** Whether a response says that it is not to be stored. Scripts may read this header of any origin's response. */
function notShared(details: unknown): boolean {
  const response = details as Partial<XMLHttpRequest & Response> | null | undefined;
  try {
    return notStored(response?.headers?.get('cache-control') ?? response?.getResponseHeader?.('cache-control'));
  } catch {
    return false; // a loader of the page's own hands out what it likes
  }
}

function bytesOf(data: unknown): ArrayBuffer | undefined {
  if (data instanceof ArrayBuffer) return data;
  return ArrayBuffer.isView(data)
    ? (new Uint8Array(data.buffer, data.byteOffset, data.byteLength).slice().buffer as ArrayBuffer)
    : undefined;
}

/** Fragments that are shared: media and init segments of audio and video. A bandwidth test measures the origin. */
function shared({ frag }: FragmentContext): boolean {
  return !frag.bitrateTest && frag.type !== 'subtitle';
}

/** The request to the core. An init segment begins at 0, so that it is always due; a part of a segment has nothing after it that is there. */
export function requestFor(
  context: FragmentContext,
  { hls }: LoaderContext,
  origin: SegmentRequest['origin'],
): SegmentRequest {
  const { frag, part } = context;
  const asked = part ?? frag;
  return {
    ...refOf(asked),
    url: context.url,
    range: rangeOf(context),
    rendition: `${frag.type}-${frag.level}`,
    bitrate: bitrateOf(hls, frag),
    adaptive: hls.autoLevelEnabled && hls.levels.length > 1,
    deadlineMs: () => deadlineMs(hls.media, asked.start),
    upcoming: part ? [] : upcomingOf(hls, frag),
    part: part! && { sequence: frag.sn as number, index: part.index, listed: () => partsOf(hls, frag) },
    track: frag.type,
    playlist: frag.baseurl,
    live: isLive(hls, frag),
    zeroMs: zeroOf(hls, frag),
    origin,
  };
}

/**
 * Makes the timing that hls.js measures from say what the line can carry (bytes ÷ capacity), not how fast peers sent.
 * Without an estimate there is nothing to say: the fragment is no sample.
 */
export function reportCapacity(stats: LoaderStats, bytes: number, now: number, bps?: number, ttfbMs?: number): void {
  stats.loaded = stats.total = bytes;
  stats.aborted = !bps;
  stats.loading.end = now;
  stats.loading.first = now - (bps ? (bytes * 8000) / bps : 0);
  stats.loading.start = stats.loading.first - (ttfbMs || 0);
}

/** Wraps the loader class that was in use. */
export function wrapLoader(Previous: LoaderConstructor, attached: LoaderContext): LoaderConstructor {
  return function LeewayLoader(hlsConfig: HlsConfig): FragmentLoaderLike {
    const { clock, hls, caught } = attached;
    /** Serves what is none of our business, and lends its stats object to what is. */
    const plain = new Previous(hlsConfig);
    const { stats } = plain;
    let own: FragmentContext | null = null;
    /** Set while hls.js waits for an answer. */
    let waiting: LoaderCallbacks | undefined;
    let handle: ReturnType<Playback['load']> | undefined;
    /** Of the fetch of all of it from the origin. */
    let originStats: LoaderStats | undefined;
    let details: unknown = null;
    let timer = 0;

    /** Takes the callbacks, for the one answer that hls.js gets. */
    const settle = () => {
      const callbacks = waiting;
      clock.clearTimer(timer);
      waiting = undefined;
      return callbacks;
    };

    const cancel = () => {
      const callbacks = settle();
      try {
        handle?.abort();
      } catch (error) {
        caught('abort', error);
      }
      handle = undefined;
      return callbacks;
    };

    /** A fragment that the origin alone delivered carries the origin loader's own timing. */
    const adoptTiming = () => {
      if (!originStats) return;
      const { loading, loaded, total } = originStats;
      Object.assign(stats, { loading, loaded, total });
    };

    const succeed = (playback: Playback, { data, bytes, status = 200, crowded }: SegmentResult) => {
      const callbacks = settle();
      if (!callbacks) return;
      const pure = originStats && bytes.seed + bytes.peer === 0;
      if (pure && !crowded) adoptTiming();
      else reportCapacity(stats, data.byteLength, clock.now(), playback.capacity(), hls.ttfbEstimate);
      const network = pure ? details : null;
      callbacks.onProgress?.(stats, own!, data, network);
      callbacks.onSuccess({ url: own!.url, data, code: status }, stats, own!, network);
    };

    const fail = (error: Partial<OriginFailure> & Partial<Error>) => {
      const callbacks = settle();
      if (!callbacks) return;
      adoptTiming();
      if (error.tell) error.tell(callbacks);
      else callbacks.onError({ code: 0, text: error.message ?? '' }, own!, null, stats);
    };

    const begin = (playback: Playback, context: FragmentContext, config: LoaderConfiguration) => {
      let asked = false;
      const limit = config.loadPolicy?.maxLoadTimeMs ?? config.timeout;
      /** The origin loader keeps its own times; this bounds the whole. An origin that is asked after a wait for peers has all of it. */
      const start = () => {
        clock.clearTimer(timer);
        stats.loading.start = clock.now();
        if (limit! > 0 && limit! < Number.POSITIVE_INFINITY)
          timer = clock.setTimer(() => cancel()?.onTimeout(stats, context, null), limit!);
      };
      const request = requestFor(context, attached, async (signal, onProgress, part) => {
        const origin = new Previous(hlsConfig);
        if (!part) originStats = origin.stats;
        if (waiting && !asked) start();
        asked = true;
        const range = part && { rangeStart: part.first, rangeEnd: part.last + 1 };
        const result = await fetchOrigin(origin, stats, clock, context, config, signal, onProgress, range);
        details = result.details;
        return result;
      });
      request.beside = (url, ...how) =>
        fetchOrigin(new Previous(hlsConfig), stats, clock, context, config, ...how, { url, rangeEnd: 0 });
      own = context;
      start();
      handle = playback.load(request, (loaded, total) => {
        // Live figures: hls.js abandons a fragment that comes too slowly by these. Until the origin is asked it waits for peers, which says
        // nothing of the line. Then both may be at it, each with a count of its own: the one ahead says how far the segment is.
        if (!waiting || !asked || loaded <= stats.loaded) return;
        stats.loading.first ||= clock.now();
        Object.assign(stats, { loaded, total });
      });
      handle.result.then((result) => succeed(playback, result), fail);
    };

    return {
      stats,
      get context() {
        return own ?? plain.context;
      },
      load(context, config, callbacks) {
        try {
          const playback = attached.playback();
          if (playback?.active && shared(context)) {
            waiting = callbacks;
            begin(playback, context, config);
            return;
          }
        } catch (error) {
          caught('loader', error);
          cancel();
          own = null;
          stats.loading.start = 0;
        }
        plain.load(context, config, {
          ...callbacks,
          onSuccess(response, ...rest) {
            try {
              attached.playback()?.bypass(bytesOf(response.data)?.byteLength ?? 0, transferMs(plain.stats));
            } catch (error) {
              caught('bypass', error);
            }
            callbacks.onSuccess(response, ...rest);
          },
        });
      },
      abort() {
        if (!own) return plain.abort();
        stats.aborted = true;
        cancel()?.onAbort?.(stats, own, details);
      },
      destroy() {
        cancel();
        plain.destroy();
      },
    };
  } as unknown as LoaderConstructor;
}
