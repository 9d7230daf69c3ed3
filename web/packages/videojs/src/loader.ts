/**
 * What stands in the place of `videojs.Vhs.xhr`: a page has one for all its players. It shares the segments of players that are
 * attached, and passes everything else on: playlists, keys, captions, other players. VHS's own function runs before it, with the
 * page's hooks, and after it.
 */

import { type Clock, deadlineMs, notStored, type OriginResult, type Playback, type SegmentRequest } from '@leeway/core';
import { createTiming } from '@leeway/core/timing';
import { type Place, partsOf, refOf, upcomingOf } from './position.ts';
import { createRequest } from './request.ts';
import type {
  VhsHandler,
  VhsXhr,
  VideojsLike,
  Xhr,
  XhrCallback,
  XhrOptions,
  XhrRequest,
  XhrResponse,
} from './videojs.ts';

/** What is known of a request: whose it is, and of which segment. */
export interface Asked {
  vhs: VhsHandler;
  media: HTMLMediaElement | null;
  place: Place;
  playback: Playback;
  /** From now on VHS is to go by what it is told of its requests alone: the browser's own estimate of the line knows nothing of peers. */
  ownSamples(): void;
  caught(where: string, error: unknown): void;
}

/** What the origin answered instead of a segment; handed to VHS as it was. */
interface OriginFailure {
  told: Parameters<XhrCallback>;
  request: XhrRequest;
}

/** The request to the core. */
export function requestFor(
  { place, vhs, media }: Pick<Asked, 'place' | 'vhs' | 'media'>,
  origin: SegmentRequest['origin'],
): SegmentRequest {
  const { track, loader, pending, init } = place;
  const { playlist, mediaIndex, partIndex, segment } = pending;
  const ref = refOf(place);
  const live = !playlist.endList;
  const sequence = playlist.mediaSequence + mediaIndex;
  const part = !init && pending.part ? { sequence, index: partIndex!, listed: () => partsOf(loader) } : undefined;
  return {
    ...ref,
    rendition: `${track}-${playlist.id ?? playlist.resolvedUri}`,
    bitrate: playlist.attributes?.BANDWIDTH ?? vhs.playlists?.media()?.attributes?.BANDWIDTH ?? 0,
    adaptive: (vhs.playlists?.main?.playlists.length ?? 0) > 1,
    deadlineMs: () => (init ? 0 : deadlineMs(media, ref.startMs / 1000)),
    upcoming: init ? [] : upcomingOf(pending),
    part,
    track,
    live,
    // As hls.js has it: what viewers tell each other of is counted alike, whichever player they have.
    zeroMs: +(live && (segment.programDateTime || (sequence * playlist.targetDuration * 1000) % 4e12) - ref.startMs),
    ...(playlist.resolvedUri && { playlist: playlist.resolvedUri }),
    origin,
  };
}

/** Whether VHS takes an answer for a segment. */
const came = (error: Error | null, { statusCode }: XhrResponse, data: unknown): data is ArrayBuffer =>
  !error && /^20[06]$/.test(String(statusCode)) && data instanceof ArrayBuffer;

/** A fetcher for the core, by what VHS would send with, how long its last fetch took, and what it answered for all of the segment. */
function createOrigin(send: Xhr, clock: Clock, options: XhrOptions) {
  const last: { ms: number; response?: XhrResponse } = { ms: 0 };
  const fetch: SegmentRequest['origin'] = (signal, onProgress, part) =>
    new Promise<OriginResult>((resolve, reject) => {
      signal.throwIfAborted();
      const startedAt = clock.now();
      const timing = createTiming(clock);
      const headers = { ...options.headers, ...(part && { Range: `bytes=${part.first}-${part.last}` }) };
      const request = send({ ...options, headers }, (...told) => {
        const [error, response] = told;
        const { statusCode, headers: received = {} } = response;
        const data = request.response;
        if (!came(error, response, data)) return reject({ told, request } satisfies OriginFailure);
        last.ms = clock.now() - startedAt;
        if (!part) last.response = response;
        resolve({
          data,
          status: statusCode,
          url: request.responseURL || options.uri,
          transferMs: timing.ms(data.byteLength),
          unshared: notStored(received['cache-control']),
        });
      });
      request.addEventListener('progress', ({ loaded, total }) => {
        timing.saw(loaded);
        onProgress(loaded, total);
      });
      const abort = () => {
        request.abort();
        reject(signal.reason);
      };
      signal.addEventListener('abort', abort, { once: true });
    });
  return { fetch, last };
}

/** One segment by the core. */
function share(send: Xhr, clock: Clock, asked: Asked, options: XhrOptions, callback: XhrCallback): XhrRequest {
  const { playback, vhs } = asked;
  const origin = createOrigin(send, clock, options);
  let timer = 0;
  const fail = (error: Error) => request.end(() => callback(error, { statusCode: 0, headers: {}, url: options.uri }));
  const late = () => {
    fail(Object.assign(new Error('XMLHttpRequest timeout'), { code: 'ETIMEDOUT' }));
    loading.abort();
  };
  // VHS gives a segment one and a half of its duration, and takes the lowest rendition after that. The wait for peers may be most of
  // it (spec/schedule.md, `turn_us`): an origin that is asked then has the time that it has without them.
  const within = () => {
    clock.clearTimer(timer);
    timer = options.timeout ? clock.setTimer(late, options.timeout) : 0;
  };
  const request = createRequest(() => {
    clock.clearTimer(timer);
    loading.abort();
  });
  const since = clock.now();
  let told = false;
  const wanted = requestFor(asked, (...how) => {
    within();
    // VHS gives up what comes too slowly, by its bytes and the time since it asked. A wait for peers says nothing of the line.
    if (!told) request.requestTime! += clock.now() - since;
    told = true;
    return origin.fetch(...how);
  });
  const { Range, ...headers } = options.headers ?? {};
  wanted.beside = (uri, ...how) => createOrigin(send, clock, { ...options, uri, headers }).fetch(...how);
  const loading = playback.load(wanted, (...how) => {
    if (told) request.progress(...how);
  });
  within();
  loading.result.then(
    ({ data, bytes, crowded, status = 200 }) => {
      clock.clearTimer(timer);
      request.response = data;
      request.status = status;
      // What VHS makes of the line: the origin's own time where it alone has sent, else what the line can carry.
      const alone = bytes.seed + bytes.peer === 0;
      const pure = alone && !crowded && origin.last.ms;
      if (!pure) asked.ownSamples();
      request.bandwidth = pure ? (data.byteLength * 8000) / pure : (playback.capacity() ?? vhs.bandwidth);
      // The page's hooks read it.
      const own = (alone && origin.last.response) || { headers: {}, url: options.uri, rawRequest: request };
      request.received = own.headers ?? {};
      request.end(() => callback(null, { ...own, statusCode: status, body: data }, data));
    },
    (error: Partial<OriginFailure> & Error) => {
      clock.clearTimer(timer);
      const { told, request: failed } = error;
      if (!told || !failed) return fail(error);
      // The origin's own error is the player's business, as it came.
      request.response = failed.response;
      request.status = failed.status;
      request.received = told[1].headers ?? {};
      request.end(() => callback(...told));
    },
  );
  return request;
}

/** Makes the function. `take`: what is known of the request that VHS makes now. */
export function createXhr(videojs: VideojsLike, previous: VhsXhr, clock: Clock, take: () => Asked | undefined): VhsXhr {
  // VHS's own means the one of Video.js; another is the page's.
  const send: Xhr = (options, callback) => (previous.original ? videojs.xhr : previous)(options, callback);
  const xhr: Xhr = (options, callback) => {
    const asked = take();
    if (!asked) return send(options, callback);
    try {
      if (asked.playback.active) return share(send, clock, asked, options, callback);
    } catch (error) {
      asked.caught('loader', error);
    }
    return pass(send, clock, asked.playback, options, callback);
  };
  // Its other properties are the hooks that a page sets for all players.
  return new Proxy(previous, {
    apply: (_target, _this, [options, callback]) => xhr(options, callback),
    get: (target, key) => (key === 'original' ? false : Reflect.get(target, key)),
  });
}

/** What the player fetches itself, for the statistics: an error is asked for again. */
function pass(send: Xhr, clock: Clock, playback: Playback, options: XhrOptions, callback: XhrCallback): XhrRequest {
  const timing = createTiming(clock);
  const request = send(options, (error, response, body) => {
    const { response: data } = request;
    if (came(error, response, data)) playback.bypass(data.byteLength, timing.ms(data.byteLength));
    callback(error, response, body);
  });
  request.addEventListener('progress', ({ loaded }) => timing.saw(loaded));
  return request;
}
