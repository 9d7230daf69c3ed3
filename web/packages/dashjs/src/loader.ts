/** Loads what a player of dash.js asks for, in place of its own loader, which fetches from the origin. */

import {
  type Clock,
  deadlineMs,
  type Growing,
  notStored,
  type OriginResult,
  type Playback,
  type SegmentRequest,
} from '@leeway/core';
import { createTiming } from '@leeway/core/timing';
import type {
  CommonRequest,
  CommonResponse,
  FragmentRequest,
  Load,
  MakeLoader,
  PlayerLike,
  Progress,
} from './dashjs.ts';
import type { Instead } from './meet.ts';
import { rangeOf, upcomingOf } from './position.ts';

export interface LoaderContext {
  player: PlayerLike;
  clock: Clock;
  /** The MPD is asked for. */
  opens(): void;
  playback(): Playback | undefined;
  /** The URLs of requests before anything was written into them. */
  urls: WeakMap<FragmentRequest, string>;
  caught(where: string, error: unknown): void;
}

/** A value that dash.js throws for rather than say that there is none. */
export function known<T>(read: () => T, caught?: LoaderContext['caught']): T | undefined {
  try {
    return read();
  } catch (error) {
    caught?.('loader', error);
    return undefined;
  }
}

/** The request to the core; undefined: it is none that can be shared. An initialization segment cannot wait: its deadline is now. */
function requestFor(
  player: PlayerLike,
  playlist: string,
  { method, customData: { request } }: CommonRequest,
  plainUrl: string | undefined,
  how: Pick<SegmentRequest, 'origin' | 'growing' | 'beside'>,
): SegmentRequest | undefined {
  const { type, mediaType: track, representation, startTime, duration } = request;
  const range = rangeOf(request);
  const kind = `${method} ${track} ${type}`;
  if (range === null || !representation || !/^GET (video|audio) (Media|Initialization)Segment$/.test(kind))
    return undefined;
  const { id, bandwidth, adaptation } = representation;
  const live = known(() => player.isDynamic()) !== false;
  // CMCD writes what is the viewer's own into both requests; other interceptors have the common one.
  const cut = request.url.replace(/(\?)CMCD=[^&]*&|[?&]CMCD=[^&]*/, '$1');
  const url = cut === request.url ? cut : (plainUrl ?? cut);
  return {
    ...how,
    url,
    range,
    startMs: startTime * 1000 || 0,
    durationMs: duration * 1000 || 0,
    rendition: `${track}-${id}`,
    bitrate: bandwidth || 0,
    adaptive:
      player.getSettings().streaming.abr.autoSwitchBitrate[track!] !== false &&
      known(() => player.getRepresentationsByType(track!).length)! > 1,
    deadlineMs: () => deadlineMs(known(() => player.getVideoElement())!, startTime) || 0,
    upcoming: upcomingOf({ ...request, url }),
    track: track!,
    live,
    zeroMs: +(live && (adaptation?.period.mpd?.availabilityStartTime as Date)) || 0,
    playlist,
    representation: id,
  };
}

/** Whether a request has brought what it asked for, and not an error or a part of it. */
const came = (response: CommonResponse): response is CommonResponse & { status: number; data: ArrayBuffer } =>
  /^2/.test(`${response.status}`) && !!response.data;

/** How long a pause of what comes may be; not above 0: as long as it likes. */
const pauseMs = (player: PlayerLike) => player.getSettings().streaming.fragmentRequestProgressTimeout;

/** A timer that is set anew by each call, and stopped by one without a time. */
function createTimer(clock: Clock) {
  let timer = 0;
  return (ms?: number | false, f?: () => void) => {
    clock.clearTimer(timer);
    if ((ms as number) > 0) timer = clock.setTimer(f!, ms as number);
  };
}

/** What a fetch from the origin has brought, with what else its response has. */
type Fetched = OriginResult & CommonResponse & { data: ArrayBuffer };

/** One fetch from the origin, by a loader of dash.js's own; `growing` is told what comes meanwhile. Rejects with what the response has. */
function fetchOrigin(
  { player, clock }: LoaderContext,
  make: MakeLoader,
  request: CommonRequest,
  signal: AbortSignal,
  onProgress: (loaded: number, total: number) => void,
  growing?: Growing,
): Promise<Fetched> {
  return new Promise((resolve, reject) => {
    const response: CommonResponse = {};
    const timing = createTiming(clock);
    const pause = createTimer(clock);
    const taken: [Uint8Array, number][] = [];
    let at = 0;
    let size = 0;
    /** What the loader itself says of the time. */
    let took: Progress['time'];
    /** Its headers are there before its first byte. */
    const unshared = () => notStored(response.headers?.['cache-control']);
    const abort = () => {
      pause();
      customData.abort!();
      reject(response);
    };
    if (signal.aborted) return reject(response);
    signal.addEventListener('abort', abort);
    const customData: CommonRequest['customData'] = {
      ...request.customData,
      onprogress({ data, time, loaded, total }) {
        pause(pauseMs(player), abort);
        took = time;
        if (data) {
          const bytes = new Uint8Array(data);
          taken.push([bytes, at]);
          // First it is dash.js's: the core goes on from there with what peers have sent.
          growing?.give(bytes, at);
          growing?.heard?.(bytes, unshared());
          at += bytes.length;
        }
        size = loaded ?? at;
        timing.saw(size);
        onProgress(size, total ?? at);
      },
      onloadend() {
        pause();
        if (!came(response)) return reject(response);
        let { data } = response;
        if (at) {
          // What comes with the response is the rest, and may have bytes before it.
          taken.push([new Uint8Array(data.slice(at - size)), at]);
          const whole = new Uint8Array(size);
          for (const [bytes, from] of taken) whole.set(bytes, from);
          data = whole.buffer;
        }
        const transferMs = took || timing.ms(data.byteLength);
        resolve({ url: request.url, ...response, data, transferMs, unshared: unshared() });
      },
      onabort: undefined,
    };
    make().load({ ...request, customData }, response);
  });
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

/** Has the core load a segment, and dash.js told. Undefined: it is none that can be shared. Without `plain` it may still be made. */
function share(
  context: LoaderContext,
  playback: Playback,
  own: Load,
  plain: MakeLoader | undefined,
  request: CommonRequest,
  response: CommonResponse,
): true | undefined {
  const { player, clock, urls } = context;
  const { customData, timeout } = request;
  const asked = customData.request;
  const make = plain ?? (() => ({ load: own }));
  let last: Fetched | undefined;
  let over = false;
  /** Whether the origin sends all of it just now, and whether others have sent anything. */
  let alone = false;
  let others = false;
  let given = 0;
  const limit = createTimer(clock);
  const repeat = createTimer(clock);
  /** Gives dash.js each byte of a segment once, in turn, whatever brought it first. */
  const growing: Growing | undefined = plain
    ? undefined
    : {
        give(bytes, at) {
          const { buffer: data, length } = bytes.slice(given - at);
          given += length;
          if (length && !over) customData.onprogress?.({ data, lengthComputable: false, noTrace: true });
        },
      };
  const tell = (loaded: number, total: number, noTrace: boolean, time?: number) =>
    customData.onprogress?.({ loaded, total, lengthComputable: true, noTrace, time });
  /**
   * Tells dash.js how far a segment is: it abandons one by the traces that this leaves. Beside peers the origin would look slower than
   * the line is, so there are traces as long as it alone sends. dash.js would take a pause for a failure, though peers may have one, and
   * ask for the segment once more beside this: so it is told again meanwhile. `fetchOrigin` ends a pause of the origin.
   */
  const say = (loaded: number, total: number, noTrace: boolean) => {
    repeat(pauseMs(player)! / 2, () => say(loaded, total, true));
    // Last: dash.js may abandon the segment by it.
    tell(loaded, total, noTrace);
  };
  const close = () => {
    over = true;
    limit();
    repeat();
  };
  const end = (answer: CommonResponse) => {
    close();
    Object.assign(response, answer);
    customData.onloadend?.();
  };
  const late = () => {
    loading.abort();
    customData.ontimeout?.({});
    end({});
  };
  /** An origin that is asked after a wait for peers has the time that it has without them: that of what may still be made has no end. */
  const within = () => limit(plain && !over && timeout, late);
  const { Range, ...headers } = request.headers;
  const wanted = requestFor(player, playback.manifest, request, urls.get(asked), {
    growing,
    async origin(signal, onProgress, part) {
      within();
      const moved = (loaded: number, total: number) => {
        alone = !part;
        onProgress(loaded, total);
        alone = false;
      };
      // dash.js's loaders leave out a header without a value.
      const ranged = { ...headers, Range: part ? `bytes=${part.first}-${part.last}` : Range! };
      const whole = part ? undefined : growing;
      last = await fetchOrigin(context, make, { ...request, headers: ranged }, signal, moved, whole);
      return last;
    },
    beside: (url, ...how) => fetchOrigin(context, make, { ...request, url, headers }, ...how),
  });
  if (!wanted) return undefined;
  const loading = playback.load(wanted, (loaded, total) => {
    // How long a segment will be is not known while it is made.
    if (over || growing) return;
    others ||= !alone;
    say(loaded, total, others);
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
      const total = data.byteLength;
      const pure = bytes.seed + bytes.peer === 0 ? last : undefined;
      const bps = playback.capacity();
      const ms = (!crowded && pure?.transferMs) || (bps && (total * 8000) / bps);
      // The traces until then are none.
      asked.traces?.splice(0);
      // dash.js's estimate leaves out the first sample of a request, and needs two: the second one lasts as long as the origin took, or
      // as the line's capacity says of bytes from peers. Without an estimate there is none. What may still be made has one sample.
      if (plain) tell(0, total, !ms, 1);
      tell(total, total, !ms, ms && Math.max(1, ms));
      // Headers of a part, too: the origin may renew the viewer's token in them.
      end({
        url: request.url,
        status: 200,
        ...pure,
        headers: last?.headers ?? {},
        data: given ? data.slice(given) : data,
      });
      if (!pure || overNetwork(request.url)) age(player, asked);
    },
    (failed: CommonResponse) => {
      // The origin's own answer is the player's business, as it came: it asks again, as often as its settings say.
      if (!over) end({ status: 0, ...failed, data: null });
    },
  );
  return true;
}

/** What loads in place of a player's loader. Segments that may still be made have a loader of their own (no `plain`). */
export function instead(context: LoaderContext): Instead {
  const guarded = <T>(f: () => T) => known(f, context.caught);
  return (own, plain) => (request, response) => {
    const { customData } = request;
    const type = customData.request?.type;
    const segment = /Segment$/.test(type);
    const shared =
      segment &&
      guarded(() => {
        const playback = context.playback();
        return playback?.active && share(context, playback, own, plain, request, response);
      });
    if (shared) return true;
    // What the player fetches itself is counted, but for errors, which it asks for again.
    const { onloadend, onprogress } = customData;
    const timing = createTiming(context.clock);
    let bytes = 0;
    customData.onprogress = (event) => {
      bytes = event.loaded!;
      timing.saw(bytes);
      onprogress?.(event);
    };
    customData.onloadend = (...event) => {
      if (segment && came(response)) context.playback()?.bypass(bytes, timing.ms(bytes));
      onloadend?.(...event);
    };
    own(request, response);
    // Behind it: a title that is made and joined takes the page's thread, and the first picture waits for the MPD.
    if (type === 'MPD') guarded(context.opens);
    return undefined;
  };
}
