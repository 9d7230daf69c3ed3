/** Loads what a player of dash.js asks for, in place of its own loader, which fetches from the origin. */

import { type Clock, deadlineMs, type OriginResult, type Playback, type SegmentRequest } from '@leeway/core';
import { createTiming } from '@leeway/core/timing';
import type { CommonRequest, CommonResponse, FragmentRequest, Load, MakeLoader, PlayerLike } from './dashjs.ts';
import { rangeOf, upcomingOf } from './position.ts';

export interface LoaderContext {
  player: PlayerLike;
  clock: Clock;
  /** The MPD is asked for. */
  opens(): void;
  playback(): Playback | undefined;
  /** The URL of a request before anything was written into it. */
  urlOf(request: FragmentRequest): string | undefined;
  caught(where: string, error: unknown): void;
}

/** A value that dash.js throws for rather than say that there is none. */
export function known<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** The request to the core; undefined: it is none that can be shared. An initialization segment cannot wait: its deadline is now. */
export function requestFor(
  player: PlayerLike,
  manifest: string,
  { method, customData: { request } }: CommonRequest,
  plainUrl: string | undefined,
  origin: SegmentRequest['origin'],
): SegmentRequest | undefined {
  const { type, mediaType, representation, startTime, duration } = request;
  const range = rangeOf(request);
  const media = type === 'MediaSegment';
  if (method !== 'GET' || range === null || !representation || !/^(video|audio)$/.test(mediaType ?? ''))
    return undefined;
  if (!media && type !== 'InitializationSegment') return undefined;
  const { id, bandwidth } = representation;
  // CMCD writes what is the viewer's own into both requests; other interceptors have the common one.
  const cut = request.url.replace(/(\?)CMCD=[^&]*&|[?&]CMCD=[^&]*/, '$1');
  const url = cut === request.url ? cut : (plainUrl ?? cut);
  const shared: SegmentRequest = {
    url,
    startMs: (media && startTime * 1000) || 0,
    durationMs: (media && duration * 1000) || 0,
    rendition: `${mediaType}-${id}`,
    bitrate: bandwidth || 0,
    adaptive:
      player.getSettings().streaming.abr.autoSwitchBitrate[mediaType!] !== false &&
      (known(() => player.getRepresentationsByType(mediaType!).length) ?? 1) > 1,
    deadlineMs: () => (media ? deadlineMs(known(() => player.getVideoElement()) ?? null, startTime) : 0),
    upcoming: media ? upcomingOf({ ...request, url }) : [],
    track: mediaType!,
    live: known(() => player.isDynamic()) !== false,
    playlist: manifest,
    representation: id,
    origin,
  };
  if (range) shared.range = range;
  return shared;
}

/** Whether a request has brought what it asked for, and not an error or a part of it. */
const came = (response: CommonResponse): response is CommonResponse & { status: number; data: ArrayBuffer } =>
  response.status! >= 200 && response.status! <= 299 && !!response.data;

/** How long a pause of what comes may be; 0: as long as it likes. */
const pauseMs = (player: PlayerLike) => player.getSettings().streaming.fragmentRequestProgressTimeout ?? 0;

/** One fetch from the origin, by a loader of dash.js's own. Rejects with what the response has. */
function fetchOrigin(
  { player, clock }: LoaderContext,
  plain: MakeLoader,
  request: CommonRequest,
  signal: AbortSignal,
  onProgress: (loaded: number, total: number) => void,
): Promise<OriginResult & { response: CommonResponse }> {
  return new Promise((resolve, reject) => {
    const loader = plain();
    const response: CommonResponse = {};
    const timing = createTiming(clock);
    let timer = 0;
    const abort = () => {
      clock.clearTimer(timer);
      loader.abort();
      reject(response);
    };
    if (signal.aborted) return reject(response);
    signal.addEventListener('abort', abort, { once: true });
    const customData: CommonRequest['customData'] = {
      ...request.customData,
      onprogress({ loaded, total }) {
        clock.clearTimer(timer);
        const ms = pauseMs(player);
        if (ms > 0) timer = clock.setTimer(abort, ms);
        timing.saw(loaded);
        onProgress(loaded, total);
      },
      onloadend() {
        clock.clearTimer(timer);
        if (!came(response)) return reject(response);
        const { status, url = request.url, headers = {}, data } = response;
        const transferMs = timing.ms(data.byteLength);
        const unshared = /(^|,)\s*no-store\s*(,|=|$)/i.test(headers['cache-control'] ?? '');
        resolve({ data, status, url, transferMs, unshared, response });
      },
      onabort: () => reject(response),
      ontimeout() {},
    };
    loader.load({ ...request, headers: { ...request.headers }, customData }, response);
  });
}

/**
 * What dash.js's estimate of the line is to make of a segment. It leaves out the first sample of a request, and needs two: the
 * second one lasts as long as the origin took, or as the line's capacity says of bytes from peers. Without an estimate there is none.
 */
export function sample(bytes: number, ms: number | undefined, tell: CommonRequest['customData']['onprogress']): void {
  const whole = { total: bytes, lengthComputable: true };
  tell?.({ ...whole, loaded: 0, time: 1, noTrace: !ms });
  tell?.({ ...whole, loaded: bytes, time: ms && Math.max(1, ms), noTrace: !ms });
}

/**
 * Dates a request that has ended before what dash.js takes for its browser's cache, whose answers are no samples. What peers brought
 * ahead is there at once, too. dash.js reads the dates after the interceptors of responses, so later than this.
 */
function age(player: PlayerLike, request: FragmentRequest): void {
  const { startDate, endDate, mediaType } = request;
  const least = player.getSettings().streaming.cacheLoadThresholds?.[mediaType!];
  if (startDate && endDate && least) request.startDate = new Date(Math.min(+startDate, +endDate - least));
}

/**
 * Whether the browser says that its last answer from there came over the network. It says so of the page's origin, and of others that send
 * `Timing-Allow-Origin`. A player that is not attached goes by that, too.
 */
const overNetwork = (url: string): boolean => {
  const entry = performance.getEntriesByName(url).at(-1) as PerformanceResourceTiming | undefined;
  return (entry?.transferSize ?? 0) > 0;
};

/**
 * Tells dash.js how far a segment is: it abandons one by the traces that this leaves. Beside peers the origin would look slower than the
 * line is, so there are traces as long as it alone sends. dash.js would take a pause for a failure, though peers may have one, and ask for
 * the segment once more beside this: so it is told again meanwhile. `fetchOrigin` ends a pause of the origin.
 */
function createProgress({ player, clock }: LoaderContext, { customData }: CommonRequest) {
  let own = false;
  let others = false;
  let timer = 0;
  const say = (loaded: number, total: number, noTrace: boolean) => {
    clock.clearTimer(timer);
    const ms = pauseMs(player);
    if (ms > 0) timer = clock.setTimer(() => say(loaded, total, true), ms / 2);
    // Last: dash.js may abandon the segment by it.
    customData.onprogress?.({ loaded, total, lengthComputable: true, noTrace });
  };
  return {
    /** Of a fetch of the whole from the origin. */
    origin: (onProgress: (loaded: number, total: number) => void) => (loaded: number, total: number) => {
      own = true;
      onProgress(loaded, total);
      own = false;
    },
    tell(loaded: number, total: number) {
      others ||= !own;
      say(loaded, total, others);
    },
    stop: () => clock.clearTimer(timer),
  };
}

/** Has the core load a segment, and dash.js told. False: it is none that can be shared. */
function share(
  context: LoaderContext,
  playback: Playback,
  plain: MakeLoader,
  request: CommonRequest,
  response: CommonResponse,
): boolean {
  const { player, clock, urlOf } = context;
  const { customData } = request;
  let last: (OriginResult & { response: CommonResponse }) | undefined;
  let over = false;
  const progress = createProgress(context, request);
  const plainUrl = urlOf(customData.request);
  const late = () => {
    loading.abort();
    customData.ontimeout?.({});
    end({ status: 0 });
  };
  let timer = 0;
  /** An origin that is asked after a wait for peers has the time that it has without them. */
  const within = () => {
    clock.clearTimer(timer);
    if (request.timeout && !over) timer = clock.setTimer(late, request.timeout);
  };
  const wanted = requestFor(player, playback.manifest, request, plainUrl, async (signal, onProgress, part) => {
    const headers = part ? { ...request.headers, Range: `bytes=${part.first}-${part.last}` } : request.headers;
    const moved = part ? onProgress : progress.origin(onProgress);
    within();
    last = await fetchOrigin(context, plain, { ...request, headers }, signal, moved);
    return last;
  });
  if (!wanted) return false;
  const { Range, ...headers } = request.headers;
  wanted.beside = (url, ...how) => fetchOrigin(context, plain, { ...request, url, headers }, ...how);
  const close = () => {
    over = true;
    clock.clearTimer(timer);
    progress.stop();
  };
  const end = (answer: CommonResponse) => {
    close();
    Object.assign(response, answer);
    customData.onloadend?.();
  };
  const loading = playback.load(wanted, (loaded, total) => {
    if (!over) progress.tell(loaded, total);
  });
  within();
  customData.abort = () => {
    if (over) return;
    close();
    loading.abort();
    customData.onabort?.();
  };
  loading.result.then(
    ({ data, bytes, crowded }) => {
      if (over) return;
      const pure = bytes.seed + bytes.peer === 0 ? last : undefined;
      const bps = playback.capacity();
      const ms = (!crowded && pure?.transferMs) || (bps && (data.byteLength * 8000) / bps);
      // The traces until then are none.
      customData.request.traces?.splice(0);
      sample(data.byteLength, ms, customData.onprogress);
      // Headers of a part, too: the origin may renew the viewer's token in them.
      end({ url: request.url, status: 200, ...pure?.response, headers: last?.response.headers ?? {}, data });
      if (!pure || overNetwork(request.url)) age(player, customData.request);
    },
    (failed: CommonResponse) => {
      // The origin's own answer is the player's business, as it came: it asks again, as often as its settings say.
      if (!over) end({ status: 0, ...failed, data: null });
    },
  );
  return true;
}

const segment = /Segment$/;
const typeOf = ({ customData }: CommonRequest) => customData.request?.type ?? '';

/** Has what the player fetches itself counted, but for errors, which it asks for again. */
function counted({ clock, playback }: LoaderContext, load: Load): Load {
  return (request, response) => {
    const { customData } = request;
    const { onloadend, onprogress } = customData;
    const timing = createTiming(clock);
    let bytes = 0;
    customData.onprogress = (event) => {
      timing.saw(event.loaded);
      bytes = event.loaded;
      onprogress?.(event);
    };
    customData.onloadend = (...event) => {
      if (came(response) && segment.test(typeOf(request))) playback()?.bypass(bytes, timing.ms(bytes));
      onloadend?.(...event);
    };
    return load(request, response);
  };
}

/** What loads in place of a player's loader. Low latency has a loader of its own (no `plain`), which is left alone and counted. */
export function instead(context: LoaderContext, own: Load, plain: MakeLoader | undefined): Load {
  const pass = counted(context, own);
  const guarded = <T>(f: () => T): T | undefined => {
    try {
      return f();
    } catch (error) {
      context.caught('loader', error);
      return undefined;
    }
  };
  return (request, response) => {
    const type = typeOf(request);
    const shared =
      segment.test(type) &&
      guarded(() => {
        const playback = context.playback();
        return plain && playback?.active && share(context, playback, plain, request, response);
      });
    if (shared) return true;
    const passed = pass(request, response);
    // Behind it: a title that is made and joined takes the page's thread, and the first picture waits for the MPD.
    if (type === 'MPD') guarded(context.opens);
    return passed;
  };
}
