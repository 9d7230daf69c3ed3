/** The parts of Video.js 8 and of its engine for HLS (VHS 3) that the plug-in touches, by shape. */

export interface XhrOptions {
  uri: string;
  method?: string;
  headers?: Record<string, string>;
  responseType?: string;
  /** Milliseconds. */
  timeout?: number;
  /** VHS: `segment`, `segment-media-initialization`, `segment-key`, `hls-playlist` and others. */
  requestType?: string;
}

export interface XhrResponse {
  statusCode: number;
  headers: Record<string, string>;
  url?: string;
  body?: unknown;
}

export type XhrCallback = (error: Error | null, response: XhrResponse, body?: unknown) => void;

export interface ProgressLike {
  type: string;
  target: XhrRequest;
  loaded: number;
  total: number;
}

/** What VHS reads of a request: an `XMLHttpRequest`, or what stands for one. */
export interface XhrRequest {
  readonly responseType: string;
  response: unknown;
  responseURL?: string;
  status: number;
  /** Bits per second; VHS measures where it is not set. */
  bandwidth?: number;
  /** When VHS has asked, by the date, ms: it writes that as it has the request. */
  requestTime?: number;
  abort(): void;
  addEventListener(type: string, listener: (event: ProgressLike) => void): void;
}

export type Xhr = (options: XhrOptions, callback: XhrCallback) => XhrRequest;

/** `videojs.Vhs.xhr`, and the one of each source; `original`: it is VHS's own. */
export type VhsXhr = Xhr & { original?: boolean };

export interface VhsRange {
  offset: number | bigint;
  length: number | bigint;
}

/** What has a URL: a segment, its part, its initialization segment. */
export interface VhsResource {
  resolvedUri: string;
  byterange?: VhsRange;
}

export interface VhsPart extends VhsResource {
  duration: number;
}

export interface VhsSegment extends VhsResource {
  duration: number;
  /** Wall clock of its beginning, ms since the epoch, of a stream that states one. */
  programDateTime?: number;
  map?: VhsResource;
  /** Those of a low-latency playlist, of the latest segments. */
  parts?: VhsPart[];
}

export interface VhsPlaylist {
  id?: string;
  resolvedUri?: string;
  endList?: boolean;
  mediaSequence: number;
  /** Seconds. */
  targetDuration: number;
  attributes?: { BANDWIDTH?: number };
  segments: VhsSegment[];
}

/** What a segment loader is about to ask for. */
export interface VhsPending {
  segment: VhsSegment;
  /** `false`: all of it. */
  part?: VhsPart | false;
  /** Of the part in its segment. */
  partIndex?: number | null;
  playlist: VhsPlaylist;
  mediaIndex: number;
  /** Seconds, on the player's timeline. */
  startOfSegment?: number | null;
  duration: number;
}

export interface VhsLoader {
  pendingSegment_: VhsPending | null;
  /** The latest one of what it loads now. */
  playlist_?: VhsPlaylist | null;
}

/** Of a segment in the buffer; seconds, on the player's timeline. */
export interface VhsCue {
  startTime: number;
  endTime: number;
  value?: { bandwidth?: number };
}

/** VHS for one source of a player. */
export interface VhsHandler {
  xhr: VhsXhr;
  /** Bits per second. */
  bandwidth: number;
  readonly source_: { src: string; type?: string };
  /** Another object after each change. */
  options_: { useNetworkInformationApi?: boolean };
  readonly playlists?: { main?: { playlists: unknown[] }; media(): VhsPlaylist | undefined };
  readonly playlistController_?: {
    mainSegmentLoader_: VhsLoader;
    audioSegmentLoader_: VhsLoader;
    /** Has a cue for each segment in the buffer. */
    segmentMetadataTrack_?: { cues: ArrayLike<VhsCue> | null };
  };
}

interface Tech {
  readonly vhs?: VhsHandler;
  el(): Element | null;
}

/** A player of Video.js, by what is used of it and public. */
export interface VideojsPlayer {
  on(event: string, listener: () => void): void;
  off(event: string, listener: () => void): void;
}

/** The function that Video.js's scripts define: `window.videojs`, or what `video.js` exports. */
export interface VideojsNamespace {
  getAllPlayers(): VideojsPlayer[];
}

/** The same player from within. */
export interface PlayerLike extends VideojsPlayer {
  tech(safety: true): Tech | null | undefined;
}

/** The same function from within. */
export interface VideojsLike extends VideojsNamespace {
  readonly VERSION: string;
  readonly Vhs: { xhr: VhsXhr };
  xhr: Xhr;
  getAllPlayers(): PlayerLike[];
  hook(type: 'setup', f: (player: PlayerLike) => void): void;
  removeHook(type: 'setup', f: (player: PlayerLike) => void): void;
}

/** Whether a value is a Video.js that this plug-in can work with. */
export function isVideojs(value: unknown): value is VideojsNamespace {
  const { VERSION, Vhs, xhr, getAllPlayers, hook, removeHook } = (value ?? {}) as Partial<VideojsLike>;
  const whole = xhr && Vhs?.xhr && getAllPlayers && hook && removeHook;
  return !!whole && Number.parseInt(VERSION ?? '', 10) >= 8;
}
