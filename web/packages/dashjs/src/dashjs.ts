/** The parts of dash.js 5 that the plug-in touches, by shape. */

/** What a segment is asked for by, as dash.js plans it. */
export interface FragmentRequest {
  type: string;
  mediaType: string | null;
  url: string;
  /** `first-last`, both inclusive. */
  range: string | null;
  /** Seconds. */
  startTime: number;
  duration: number;
  index: number;
  representation: Representation | null;
  /** What its estimate of the line is made from, and what it abandons a segment by. */
  traces?: object[];
  /** When the request began and ended; set as it ends. */
  startDate?: Date;
  endDate?: Date;
}

export interface Representation {
  id: string;
  bandwidth: number;
  index?: number;
  adaptation?: { index: number; period: { index: number; mpd?: Mpd } };
}

export interface Template {
  media?: string;
  timescale?: number;
  duration?: number;
  startNumber?: number;
  SegmentTimeline?: { S?: { t?: number; d: number; r?: number }[] };
}

export interface Mpd {
  manifest?: Manifest;
  /** When the timeline of a live stream begins. Where an MPD does not say it: when that was loaded. */
  availabilityStartTime?: Date | null;
}

/** An MPD as dash.js has parsed it: what a level does not say it has from above. */
export interface Manifest {
  Period?: { AdaptationSet?: { Representation?: { SegmentTemplate?: Template }[] }[] }[];
}

export interface Progress {
  loaded?: number;
  total?: number;
  lengthComputable: boolean;
  /** Whole boxes of a segment that may still be made; then neither `loaded` nor `total` is there. */
  data?: ArrayBuffer;
  /** Milliseconds that a sample of the line is taken to have lasted; null: it is not known. */
  time?: number | null | undefined;
  /** It is no sample. */
  noTrace?: boolean;
}

/** A request on its way, which interceptors may have changed. */
export interface CommonRequest {
  url: string;
  method: string;
  headers: Record<string, string>;
  timeout?: number;
  customData: {
    /** Thumbnails have a range there alone, and callbacks of events have none: they are asked for by the loader itself. */
    request: FragmentRequest;
    onloadend?(...event: unknown[]): void;
    onprogress?(event: Progress): void;
    onabort?: (() => void) | undefined;
    ontimeout?(event: object): void;
    abort?(): void;
  };
}

export interface CommonResponse {
  url?: string;
  status?: number;
  statusText?: string;
  headers?: Record<string, string>;
  data?: ArrayBuffer | null;
}

export type Load = (request: CommonRequest, response: CommonResponse) => unknown;

/** A loader of dash.js. */
export interface LoaderLike {
  load: Load;
}

/** Makes a loader of dash.js that nothing extends. */
export type MakeLoader = () => LoaderLike;

/** What dash.js calls an extension with. */
export interface Extending {
  parent: LoaderLike;
  factory: { getClassFactoryByName(name: string): (context: object) => { create(): LoaderLike } };
}

/** Makes what dash.js takes in place of what an object of its own has. */
export type Extension = (this: Extending, ...how: unknown[]) => object;

/** A player of dash.js, by what is used of it and public. */
export interface DashPlayer {
  extend(name: string, child: Extension, override: boolean): void;
  initialize(...how: unknown[]): void;
  getSource(): string | object;
  getVideoElement(): HTMLVideoElement;
  isDynamic(): boolean;
  getSettings(): object;
  updateSettings(settings: object): void;
  on(type: string, listener: never, scope?: object): void;
  off(type: string, listener: never, scope?: object): void;
}

/** Another rendition has come to the screen, or to the speakers. */
export interface Rendered {
  mediaType: string;
  newRepresentation: Representation;
}

/** What its estimate of the line goes by in place of its own loaders. */
export interface Throughput {
  useResourceTimingApi: boolean;
  useNetworkInformationApi: { xhr: boolean; fetch: boolean };
}

/** The same player from within. */
export interface PlayerLike extends DashPlayer {
  getSettings(): {
    streaming: {
      /** Milliseconds; what comes within them is taken for the browser's cache. */
      cacheLoadThresholds?: Record<string, number>;
      /** Milliseconds between two looks at what comes; not above 0: without end. */
      fragmentRequestProgressTimeout?: number;
      abr: {
        autoSwitchBitrate: Record<string, boolean>;
        throughput: Throughput;
      };
    };
  };
  getCurrentRepresentationForType(type: string): Representation | null;
  getRepresentationsByType(type: string): Representation[];
  on(type: string, listener: (event: never) => void, scope?: object): void;
  off(type: string, listener: (event: never) => void, scope?: object): void;
}

/** The namespace that the script of dash.js defines: `window.dashjs`. */
export interface DashNamespace {
  MediaPlayer: (...context: never[]) => { create(): DashPlayer };
}
