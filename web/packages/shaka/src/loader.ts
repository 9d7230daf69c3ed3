/**
 * The plug-in of Shaka's networking engine: a page has one for all its players. It shares the segments of players that are
 * attached, and passes everything else on: manifests, keys, licences, captions, other players.
 */

import {
  type Clock,
  deadlineMs,
  type Growing,
  notStored,
  type OriginResult,
  type Playback,
  type SegmentRequest,
  type SegmentResult,
} from '@leeway/core';
import { failure, fetchOrigin } from './fetching.ts';
import { createFlow, type Flow } from './flow.ts';
import { bitrateOf, playlistOf, rangeOf, upcomingOf } from './position.ts';
import type {
  HeadersReceived,
  Operation,
  PlayerLike,
  ProgressUpdated,
  RequestContext,
  SchemePlugin,
  SegmentContext,
  ShakaLike,
  ShakaRequest,
  ShakaResponse,
  StreamData,
} from './shaka.ts';

/** What is known of a request: whose it is, and of which segment. */
export interface Asked {
  player: PlayerLike;
  context: SegmentContext;
  playback(): Playback | undefined;
  /** One more segment is on its way by the core, or one less. */
  moved(change: 1 | -1): void;
  caught(where: string, error: unknown): void;
}

/**
 * The context of a segment of picture or sound; undefined: it is none of our business. Shaka names no init segments, and does not say
 * which title a segment is of that it preloads.
 */
export function ours({ stream, segment, isPreload }: RequestContext = {}): SegmentContext | undefined {
  return !isPreload && stream && segment && /^(video|audio)$/.test(stream.type) ? { stream, segment } : undefined;
}

/** The request to the core. Parts of a segment still being made cannot wait: their deadline is now. */
export function requestFor(
  { player, context: { stream, segment } }: Asked,
  manifest: string,
  uri: string,
  request: ShakaRequest,
  origin: SegmentRequest['origin'],
): SegmentRequest | undefined {
  const range = rangeOf(request);
  if (request.method !== 'GET' || range === null) return undefined;
  const start = segment.getStartTime();
  const now = segment.isPartial();
  const live = player.isDynamic();
  return {
    // Filters and CMCD write what is the viewer's own into the URI of the request.
    url: segment.getUris()[0] ?? uri,
    range,
    startMs: start * 1000,
    durationMs: (segment.getEndTime() - start) * 1000,
    rendition: `${stream.type}-${stream.id}`,
    bitrate: bitrateOf(player, stream),
    adaptive: player.getConfiguration().abr.enabled && player.getVariantTracks().length > 1,
    deadlineMs: () => (now ? 0 : deadlineMs(player.getMediaElement(), start)),
    upcoming: now ? [] : upcomingOf(stream, segment),
    track: stream.type,
    live,
    ...playlistOf(player, manifest, stream),
    zeroMs: +(live && player.getPresentationStartTimeAsDate()!),
    origin,
  };
}

/**
 * What Shaka's estimate of the line is to make of a segment: the origin's own time, else what the line can carry (bytes ÷
 * capacity), not how fast peers sent. Without an estimate there is nothing to say: the segment is no sample.
 */
export function timing(bytes: number, originMs?: number, bps?: number): Pick<ShakaResponse, 'timeMs' | 'fromCache'> {
  if (originMs !== undefined) return { timeMs: originMs };
  return bps ? { timeMs: (bytes * 8000) / bps } : { timeMs: 0, fromCache: true };
}

/** A fetcher for the core, and what came of its last fetch. */
function createOrigin(
  shaka: ShakaLike,
  clock: Clock,
  tells: () => boolean,
  [uri, request, type, progress, headers, config]: Parameters<SchemePlugin>,
  flow?: Flow,
  growing?: Growing,
) {
  const last: { response?: ShakaResponse; ms: number } = { ms: 0 };
  const fetch: SegmentRequest['origin'] = async (signal, onProgress, part): Promise<OriginResult> => {
    const startedAt = clock.now();
    let firstAt = startedAt;
    let loaded = 0;
    let unshared = false;
    // A copy: each fetch has headers of its own. What comes of a part is not appended while it comes.
    const take = part ? undefined : flow?.fetch();
    const streamDataCallback: StreamData | undefined =
      take &&
      ((bytes) => {
        // Before the core hears of them: what it gives then is behind them.
        const taken = take(bytes);
        growing?.heard?.(bytes, unshared);
        return taken;
      });
    const own = { ...request, headers: { ...request.headers }, streamDataCallback };
    if (part) own.headers.Range = `bytes=${part.first}-${part.last}`;
    const told = tells();
    const moved: ProgressUpdated = (ms, bytes, remaining) => {
      loaded += bytes;
      onProgress(loaded, loaded + remaining);
      if (told) progress(ms, bytes, remaining);
    };
    const begun: HeadersReceived = (received) => {
      firstAt = clock.now();
      unshared = notStored(received['cache-control']);
      headers(received);
    };
    const operation = fetchOrigin(shaka, clock, uri, own, type, moved, begun, config);
    const abort = () => void operation.abort();
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
    const response = await operation.promise;
    last.response = response;
    last.ms = clock.now() - startedAt;
    return {
      data: response.data,
      status: response.status ?? 200,
      url: response.uri,
      transferMs: clock.now() - firstAt,
      unshared: notStored(response.headers['cache-control']),
    };
  };
  return { fetch, last };
}

/** One segment by the core; undefined: it is none that can be shared. */
function share(
  shaka: ShakaLike,
  clock: Clock,
  asked: Asked,
  playback: Playback,
  args: Parameters<SchemePlugin>,
): Operation | undefined {
  const [uri, request, type, , , config] = args;
  const ignore = () => {};
  // Live streams stay as they were (decision 0112).
  const film = !asked.player.isDynamic();
  const moved = film ? asked.moved : ignore;
  const { streamDataCallback } = request;
  // A film is appended as what it is in the end: by whole segments.
  const flow = film || !streamDataCallback ? undefined : createFlow(streamDataCallback);
  const growing: Growing | undefined = flow && { give: (...bytes) => void flow.give(...bytes) };
  const origin = createOrigin(shaka, clock, () => film && playback.alone, args, flow, growing);
  const { timeout } = request.retryParameters;
  let timer = 0;
  /** The origin's fetch keeps its own times. This bounds the whole: an origin that is asked after a wait for peers has all of it. */
  const within = () => {
    clock.clearTimer(timer);
    if (timeout) timer = clock.setTimer(() => end('TIMEOUT'), timeout);
  };
  const wanted = requestFor(asked, playback.manifest, uri, request, (...how) => {
    within();
    return origin.fetch(...how);
  });
  if (!wanted) return undefined;
  wanted.growing = growing;
  const { Range, ...headers } = request.headers;
  wanted.beside = (url, ...how) =>
    createOrigin(shaka, clock, () => false, [url, { ...request, headers }, type, ignore, ignore, config]).fetch(...how);
  const loading = playback.load(wanted);
  moved(1);
  let code: 'OPERATION_ABORTED' | 'TIMEOUT' | 'HTTP_ERROR' = 'HTTP_ERROR';
  const end = (why: typeof code) => {
    code = why;
    loading.abort();
  };
  within();
  const ended = () => {
    clock.clearTimer(timer);
    moved(-1);
  };
  const succeed = async ({ data, bytes, crowded }: SegmentResult): Promise<ShakaResponse> => {
    ended();
    await flow?.end(data);
    const { response, ms } = origin.last;
    const pure = bytes.seed + bytes.peer === 0 ? response : undefined;
    return {
      uri: pure?.uri ?? uri,
      originalUri: uri,
      data,
      status: pure?.status ?? 200,
      // Of a part, too: the origin may renew the viewer's token in them.
      headers: response?.headers ?? {},
      originalRequest: request,
      ...timing(data.byteLength, pure && !crowded ? ms : undefined, playback.capacity()),
    };
  };
  const fail = (error: unknown): never => {
    ended();
    flow?.stop();
    // The origin's own error is the player's business, as it came.
    throw code === 'HTTP_ERROR' && error instanceof shaka.util.Error ? error : failure(shaka, code, uri, error, type);
  };
  const abort = async () => end('OPERATION_ABORTED');
  return new shaka.util.AbortableOperation(loading.result.then(succeed, fail), abort);
}

/** What the player fetches itself, for the statistics. */
function pass(
  shaka: ShakaLike,
  clock: Clock,
  playback: Playback | undefined,
  args: Parameters<SchemePlugin>,
): Operation {
  const [uri, request, type, progress, headers, config] = args;
  let firstAt = 0;
  const begun: HeadersReceived = (received) => {
    firstAt = clock.now();
    headers(received);
  };
  const operation = fetchOrigin(shaka, clock, uri, request, type, progress, begun, config);
  operation.promise.then(
    ({ data }) => playback?.bypass(data.byteLength, firstAt ? clock.now() - firstAt : undefined),
    () => {},
  );
  return operation;
}

/** Makes the plug-in. `askedOf`: what is known of a request. */
export function createPlugin(
  shaka: ShakaLike,
  clock: Clock,
  askedOf: (request: ShakaRequest) => Asked | undefined,
): SchemePlugin {
  return (...args) => {
    const [, request, type] = args;
    const asked = type === shaka.net.NetworkingEngine.RequestType.SEGMENT ? askedOf(request) : undefined;
    const playback = asked?.playback();
    try {
      const shared = playback?.active && share(shaka, clock, asked!, playback, args);
      if (shared) return shared;
    } catch (error) {
      asked!.caught('loader', error);
    }
    return pass(shaka, clock, playback, args);
  };
}
