/**
 * Video.js as far as the plug-in touches it. The end-to-end suite has the real one: it does not run without a page. What VHS does
 * before and after `videojs.Vhs.xhr` is here as it does it.
 */

import type {
  PlayerLike,
  ProgressLike,
  VhsCue,
  VhsHandler,
  VhsPending,
  VhsPlaylist,
  VhsXhr,
  VideojsLike,
  XhrCallback,
  XhrOptions,
  XhrRequest,
  XhrResponse,
} from './videojs.ts';

/** One request to the origin, answered by hand. */
export class OriginXhr implements XhrRequest {
  static made: OriginXhr[] = [];
  responseType = 'arraybuffer';
  response: unknown = null;
  responseURL = '';
  status = 0;
  aborted = false;
  private readonly listeners: [string, (event: ProgressLike) => void][] = [];

  constructor(
    readonly options: XhrOptions,
    private readonly callback: XhrCallback,
  ) {
    OriginXhr.made.push(this);
  }
  abort(): void {
    this.aborted = true;
  }
  addEventListener(type: string, listener: (event: ProgressLike) => void): void {
    this.listeners.push([type, listener]);
  }
  progress(loaded: number, total: number): void {
    for (const [type, listener] of this.listeners) {
      if (type === 'progress') listener({ type, target: this, loaded, total });
    }
  }
  answer(bytes: number, status = 200, headers: Record<string, string> = {}): void {
    this.response = new ArrayBuffer(bytes);
    this.status = status;
    this.callback(null, { statusCode: status, headers, url: this.options.uri }, this.response);
  }
  fail(error: Error): void {
    this.callback(error, { statusCode: 0, headers: {} });
  }
}

/** What VHS has of a request in the end. */
export interface Ended {
  error: Error | null;
  request: XhrRequest & { timedout?: boolean; aborted?: boolean };
}

/** The function that VHS makes for each source: hooks before, the time and the bandwidth after. */
export function sourceXhr(videojs: VideojsLike) {
  const hooks = new Set<(options: XhrOptions) => XhrOptions>();
  const ended: Ended[] = [];
  const hooked: { request: XhrRequest; response: XhrResponse }[] = [];
  const xhr = (options: XhrOptions, callback: XhrCallback): XhrRequest => {
    let asked: XhrOptions = { timeout: 45_000, ...options };
    const send = videojs.Vhs.xhr.original === true ? videojs.xhr : videojs.Vhs.xhr;
    for (const hook of hooks) asked = hook(asked);
    const request: Ended['request'] = send(asked, (error, response, body) => {
      hooked.push({ request, response });
      if ((error as { code?: string } | null)?.code === 'ETIMEDOUT') request.timedout = true;
      const bad = !error && !/^(200|206|0)$/.test(String(response.statusCode));
      ended.push({ error: bad ? new Error(`XHR Failed: ${response.statusCode}`) : error, request });
      callback(error, response, body);
    });
    request.requestTime = 1_800_000_000_000;
    const { abort } = request;
    request.abort = () => {
      request.aborted = true;
      abort.call(request);
    };
    return request;
  };
  return Object.assign(xhr, { original: true, hooks, ended, hooked });
}

export function newVideojs(): VideojsLike & { setUp: Set<(player: PlayerLike) => void>; all: FakePlayer[] } {
  const setUp = new Set<(player: PlayerLike) => void>();
  const all: FakePlayer[] = [];
  const xhr = Object.assign(
    () => {
      throw new Error('VHS takes the one of Video.js where this is its own.');
    },
    { original: true },
  ) as unknown as VhsXhr;
  return {
    VERSION: '8.24.1',
    Vhs: { xhr },
    xhr: (options, callback) => new OriginXhr(options, callback),
    getAllPlayers: () => all,
    hook: (_type, f) => setUp.add(f),
    removeHook: (_type, f) => setUp.delete(f),
    setUp,
    all,
  };
}

/** Segments of 4 s; `range`: all in one file of 100 bytes each. */
export function newPlaylist(count: number, range = false): VhsPlaylist {
  return {
    id: '0-low',
    resolvedUri: 'https://cdn/low.m3u8',
    endList: true,
    mediaSequence: 0,
    targetDuration: 4,
    attributes: { BANDWIDTH: 1_500_000 },
    segments: Array.from({ length: count }, (_, i) => ({
      resolvedUri: range ? 'https://cdn/film.mp4' : `https://cdn/${i}.ts`,
      duration: 4,
      map: { resolvedUri: 'https://cdn/init.mp4' },
      ...(range && { byterange: { offset: BigInt(i * 100), length: 100n } }),
    })),
  };
}

export const pendingOf = (playlist: VhsPlaylist, mediaIndex: number): VhsPending => ({
  segment: playlist.segments[mediaIndex]!,
  part: false,
  playlist,
  mediaIndex,
  startOfSegment: mediaIndex * 4,
  duration: 4,
});

/** A player whose sources are set by hand. */
export class FakePlayer implements PlayerLike {
  readonly listeners = new Map<string, Set<() => void>>();
  media: unknown = null;
  /** Of the segments in the buffer. */
  cues: VhsCue[] = [];
  vhs: (VhsHandler & { xhr: VhsXhr }) | undefined;

  constructor(private readonly videojs: VideojsLike) {}

  on(event: string, listener: () => void): void {
    this.listeners.set(event, (this.listeners.get(event) ?? new Set()).add(listener));
  }
  off(event: string, listener: () => void): void {
    this.listeners.get(event)?.delete(listener);
  }
  say(event: string): void {
    for (const listener of [...(this.listeners.get(event) ?? [])]) listener();
  }
  tech() {
    return { vhs: this.vhs, el: () => this.media as Element };
  }
  /** Sets a source of VHS, as its source handler does it. */
  src(src: string, playlist = newPlaylist(40), type = 'application/x-mpegURL'): ReturnType<typeof sourceXhr> {
    const xhr = sourceXhr(this.videojs);
    this.vhs = {
      xhr,
      bandwidth: 4_194_304,
      source_: { src, type },
      options_: {},
      playlists: { main: { playlists: [playlist, playlist] }, media: () => playlist },
      playlistController_: {
        mainSegmentLoader_: { pendingSegment_: pendingOf(playlist, 5), playlist_: playlist },
        audioSegmentLoader_: { pendingSegment_: null, playlist_: playlist },
        segmentMetadataTrack_: { cues: this.cues },
      },
    };
    this.say('xhr-hooks-ready');
    // Then it takes the source, with options of its own for it, and has the element load.
    this.vhs.options_ = { ...this.vhs.options_ };
    this.say('loadstart');
    return xhr;
  }
}
