/** The parts of hls.js that the plug-in touches, by shape: it works with any build since 1.5, light ones too. */

export interface LoadTiming {
  start: number;
  first: number;
  end: number;
}

export interface LoaderStats {
  aborted: boolean;
  loaded: number;
  total: number;
  retry: number;
  loading: LoadTiming;
}

/** What a playlist names: a segment, or a part of one. */
export interface NamedLike {
  start: number;
  duration: number;
  url: string;
  byteRangeStartOffset?: number | null;
  /** Exclusive. */
  byteRangeEndOffset?: number | null;
}

export interface FragmentLike extends NamedLike {
  sn: number | 'initSegment';
  level: number;
  /** `main`, `audio` or `subtitle`. */
  type: string;
  /** Of the playlist that names it. */
  baseurl?: string;
  bitrateTest?: boolean;
  /** Wall clock of its beginning, ms since the epoch. */
  programDateTime?: number | null;
}

/** A part of a segment of a low-latency stream. */
export interface PartLike extends NamedLike {
  /** In its segment, from 0. */
  index: number;
  fragment: { sn: number | 'initSegment' };
}

export interface FragmentContext {
  frag: FragmentLike;
  part: PartLike | null;
  url: string;
  headers?: Record<string, string>;
  rangeStart?: number;
  /** Exclusive; 0 with a start of 0 means the whole object. */
  rangeEnd?: number;
}

export interface LoaderResponse {
  url: string;
  data?: unknown;
  code?: number;
  text?: string;
}

export interface LoaderCallbacks {
  onSuccess(response: LoaderResponse, stats: LoaderStats, context: FragmentContext, details: unknown): void;
  onError(error: { code: number; text: string }, context: FragmentContext, details: unknown, stats: LoaderStats): void;
  onTimeout(stats: LoaderStats, context: FragmentContext, details: unknown): void;
  onAbort?(stats: LoaderStats, context: FragmentContext, details: unknown): void;
  onProgress?(stats: LoaderStats, context: FragmentContext, data: unknown, details: unknown): void;
}

export interface LoaderConfiguration {
  timeout?: number;
  loadPolicy?: { maxLoadTimeMs?: number };
}

export interface FragmentLoaderLike {
  readonly stats: LoaderStats;
  readonly context: FragmentContext | null;
  load(context: FragmentContext, config: LoaderConfiguration, callbacks: LoaderCallbacks): void;
  abort(): void;
  destroy(): void;
}

export type LoaderConstructor = new (config: HlsConfig) => FragmentLoaderLike;

export interface HlsConfig {
  fLoader?: LoaderConstructor;
  loader: LoaderConstructor;
  startFragPrefetch?: boolean;
}

export interface DetailsLike {
  fragments: FragmentLike[];
  /** Of the latest segments, and of the one that is still being made. */
  partList?: PartLike[] | null;
  /** More will come. */
  live?: boolean;
  targetduration?: number;
}

/** A player of hls.js, by what is used of it and public: every build since 1.5 has that, light ones too. */
export interface HlsPlayer {
  readonly config: { loader: new (config: never) => object; fLoader?: (new (config: never) => object) | undefined };
  readonly media: HTMLMediaElement | null;
  readonly levels: readonly { readonly bitrate: number }[];
  readonly currentLevel: number;
  readonly autoLevelEnabled: boolean;
  on(event: never, f: never): void;
  off(event: never, f: never): void;
}

/** The class that makes such players: `Hls`. */
export interface HlsClass {
  readonly prototype: { trigger(event: never, data: never): boolean };
}

/** The same player from within, with what hls.js tells its loaders, and with what some builds lack. */
export interface HlsLike extends HlsPlayer {
  readonly config: HlsConfig;
  /** Declared as private up to 1.5. */
  readonly url: string | null;
  readonly levels: { bitrate: number; details?: DetailsLike }[];
  readonly audioTracks?: { details?: DetailsLike; bitrate?: number }[];
  readonly ttfbEstimate?: number;
  /** Wall clock of the picture, of a stream that has one. */
  readonly playingDate?: Date | null;
  on(event: string, f: (event: string, data: never) => void): void;
  off(event: string, f: (event: string, data: never) => void): void;
}

/** The last event of a player. */
export const destroying = 'hlsDestroying';
