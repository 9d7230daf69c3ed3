/** The parts of Shaka Player 5 that the plug-in touches, by shape: it works with any of its builds. */

export interface RetryParameters {
  timeout?: number;
  connectionTimeout?: number;
  stallTimeout?: number;
}

/** Resolves when the bytes are taken. */
export type StreamData = (bytes: Uint8Array) => Promise<unknown>;

export interface ShakaRequest {
  uris: string[];
  method: string;
  headers: Record<string, string>;
  retryParameters: RetryParameters;
  /** Takes the bytes while they come, where the plug-in gives them. */
  streamDataCallback?: StreamData | null;
}

export interface ShakaResponse {
  uri: string;
  originalUri: string;
  data: ArrayBuffer;
  headers: Record<string, string>;
  originalRequest: ShakaRequest;
  status?: number;
  /** What the player's estimate of the line takes the bytes to have taken. */
  timeMs?: number;
  /** It is no sample of the line. */
  fromCache?: boolean;
}

export interface Operation {
  readonly promise: Promise<ShakaResponse>;
  abort(): Promise<unknown>;
}

export type ProgressUpdated = (ms: number, bytes: number, remaining: number) => void;
export type HeadersReceived = (headers: Record<string, string>) => void;

/** What fetches the URIs of a scheme, for all players of a page. */
export type SchemePlugin = (
  uri: string,
  request: ShakaRequest,
  type: number,
  progress: ProgressUpdated,
  headers: HeadersReceived,
  config: unknown,
) => Operation;

export interface SegmentReference {
  getUris(): string[];
  getStartByte(): number;
  /** Inclusive; null: to the end of the resource. */
  getEndByte(): number | null;
  getStartTime(): number;
  getEndTime(): number;
  /** Of a segment that is still being made. */
  isPartial(): boolean;
}

export interface SegmentIndex {
  find(time: number): number | null;
  get(position: number): SegmentReference | null;
}

export interface ShakaStream {
  id: number;
  /** `video`, `audio`, `text` or `image`. */
  type: string;
  bandwidth?: number;
  /** As the manifest has it: the ID of a representation, the reference of a playlist; several are joined by commas. */
  originalId?: string | null;
  segmentIndex?: SegmentIndex | null;
}

/** Which segment a request is for. */
export interface SegmentContext {
  stream: ShakaStream;
  segment: SegmentReference;
}

export interface RequestContext extends Partial<SegmentContext> {
  /** By `player.preload()`: of what may be loaded later, beside what the player has loaded. */
  isPreload?: boolean;
}

export type RequestFilter = (type: number, request: ShakaRequest, context?: RequestContext) => void;

/** A player of Shaka, by what is used of it and public. */
export interface ShakaPlayer {
  getAssetUri(): string | null;
  getMediaElement(): HTMLMediaElement | null;
  addEventListener(type: string, listener: never): void;
  removeEventListener(type: string, listener: never): void;
}

/** The namespace that Shaka's scripts define: `window.shaka`, or what `shaka-player` exports. */
export interface ShakaNamespace {
  readonly Player: { readonly prototype: object };
}

/** The same player from within. */
export interface PlayerLike extends ShakaPlayer {
  /** `HLS` or `DASH`; null while no manifest has been read. */
  getManifestType(): string | null;
  getNetworkingEngine(): {
    registerRequestFilter(filter: RequestFilter): void;
    unregisterRequestFilter(filter: RequestFilter): void;
  } | null;
  getVariantTracks(): { active: boolean; bandwidth: number }[];
  getConfiguration(): { abr: { enabled: boolean } };
  /** More of it will come: it is live, for Shaka, or of an event whose end it takes for known (`EXT-X-PLAYLIST-TYPE:EVENT`, a duration). */
  isDynamic(): boolean;
  /** Of a live stream; null where it states no clock. */
  getPresentationStartTimeAsDate(): Date | null;
  addEventListener(type: string, listener: (event: unknown) => void): void;
  removeEventListener(type: string, listener: (event: unknown) => void): void;
}

interface HttpPlugin {
  parse: SchemePlugin;
  isSupported(): boolean;
}

/** The same namespace from within. */
export interface ShakaLike extends ShakaNamespace {
  readonly Player: { readonly version: string; readonly prototype: { dispatchEvent(event: unknown): boolean } };
  readonly net: {
    readonly NetworkingEngine: {
      readonly RequestType: { readonly SEGMENT: number };
      readonly PluginPriority: { readonly PREFERRED: number };
      registerScheme(scheme: string, plugin: SchemePlugin, priority: number, progress: boolean): void;
    };
    readonly HttpFetchPlugin: HttpPlugin;
    readonly HttpXHRPlugin?: HttpPlugin;
  };
  readonly util: {
    readonly AbortableOperation: new (promise: Promise<ShakaResponse>, abort: () => Promise<unknown>) => Operation;
    readonly Error: (new (
      severity: number,
      category: number,
      code: number,
      ...data: unknown[]
    ) => object) & {
      readonly Severity: { readonly RECOVERABLE: number };
      readonly Category: { readonly NETWORK: number };
      readonly Code: { readonly HTTP_ERROR: number; readonly TIMEOUT: number; readonly OPERATION_ABORTED: number };
    };
  };
}

/** Whether a value is the namespace of a Shaka Player that this plug-in can work with. */
export function isShaka(value: unknown): value is ShakaNamespace {
  const { Player, net, util } = (value ?? {}) as Partial<ShakaLike>;
  const [major = 0] = /\d+/.exec(Player?.version ?? '') ?? [];
  const engine = net?.NetworkingEngine;
  return !!(
    Number(major) >= 5 &&
    Player?.prototype?.dispatchEvent &&
    engine?.registerScheme &&
    net?.HttpFetchPlugin &&
    util?.AbortableOperation
  );
}
