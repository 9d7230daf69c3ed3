import shaka from 'shaka-player';
import type { Driver, Start } from './driver';

/** The parts of Shaka that are used here, by shape: its own types say less of what is within a manifest. */
interface Reference {
  getStartTime(): number;
  getEndTime(): number;
  getUris(): string[];
}
interface Stream {
  id: number;
  type: string;
  height?: number;
  segmentIndex: Iterable<Reference | null> | null;
}
interface Track {
  id: number;
  videoId: number;
  active: boolean;
  bandwidth: number;
  height: number | null;
}
interface Failure {
  severity: number;
  code: number;
  data?: unknown[];
}
interface Context {
  stream?: Stream;
  segment?: Reference;
}
interface ShakaPlayer {
  addEventListener(type: string, listener: (event: Event & { detail: Failure }) => void): void;
  attach(video: HTMLVideoElement): Promise<void>;
  configure(settings: object): void;
  load(src: string): Promise<void>;
  isLive(): boolean;
  getVariantTracks(): Track[];
  selectVariantTrack(track: Track, clear?: boolean): void;
  getPlayheadTimeAsDate(): Date | null;
  getNetworkingEngine(): {
    registerRequestFilter(filter: (type: number, request: { uris: string[] }, context?: Context) => void): void;
    registerResponseFilter(
      filter: (type: number, response: { uri: string; data: ArrayBuffer }, context?: Context) => void,
    ): void;
  };
}
interface ShakaNamespace {
  Player: new () => ShakaPlayer;
  polyfill: { installAll(): void };
  net: { NetworkingEngine: { RequestType: { SEGMENT: number } } };
  util: { Error: { Severity: { CRITICAL: number }; Category: { NETWORK: number }; Code: { BAD_HTTP_STATUS: number } } };
}

/** An ordinary Shaka player. */
export const start: Start = (video, src, options, listener) => {
  const library = shaka as unknown as ShakaNamespace;
  Object.assign(window, { shaka: library });
  library.polyfill.installAll();
  const player = new library.Player();
  const { Severity, Code } = library.util.Error;
  const failed = ({ severity, code, data }: Failure) => {
    if (severity !== Severity.CRITICAL) return;
    const status = code === Code.BAD_HTTP_STATUS ? ` (HTTP ${data?.[1]})` : '';
    listener.failed(`The film does not load${status}: Shaka says ${code}.`);
  };
  const tracks = () => player.getVariantTracks().sort((a, b) => a.bandwidth - b.bandwidth);
  const shown = () => player.getVariantTracks().find(({ active }) => active);
  /** Streams with a picture by their IDs, and the lines of its segments, as they are asked for: to ask for the manifest makes Shaka warn. */
  const streams = new Map<number, Stream>();
  const heights = new Map<string, number | undefined>();
  player.addEventListener('error', ({ detail }) => failed(detail));
  let height: number | null | undefined;
  player.addEventListener('adaptation', () => {
    const now = shown()?.height;
    if (height !== undefined && now !== height) listener.switched();
    height = now;
  });
  player.configure({
    streaming: { bufferingGoal: options.maxBuffer, bufferBehind: 30 },
    ...(options.level === undefined ? {} : { abr: { enabled: false } }),
  });
  const { SEGMENT } = library.net.NetworkingEngine.RequestType;
  const networking = player.getNetworkingEngine();
  networking.registerRequestFilter((type, { uris }, { stream, segment } = {}) => {
    if (type !== SEGMENT || stream?.type !== 'video' || !segment) return;
    streams.set(stream.id, stream);
    for (const uri of uris) heights.set(uri, stream.height);
  });
  networking.registerResponseFilter((type, { uri, data }, { stream, segment } = {}) => {
    if (type !== SEGMENT || stream?.type !== 'video' || !segment) return;
    const startMs = Math.round(segment.getStartTime() * 1000);
    const durationMs = Math.round(segment.getEndTime() * 1000) - startMs;
    const level = tracks().findIndex(({ videoId }) => videoId === stream.id);
    const sn = Math.round(startMs / Math.max(1, durationMs));
    listener.segment({ url: uri, level, sn, startMs, durationMs, bytes: data.byteLength });
  });
  player
    .attach(video)
    .then(() => player.load(src))
    .then(() => {
      const track = options.level === undefined ? undefined : (tracks()[options.level] ?? tracks().at(-1));
      if (track && !track.active) player.selectVariantTrack(track, true);
      height = track?.height ?? shown()?.height;
      if (options.autoplay) video.play().catch(() => undefined);
    })
    .catch(failed);

  return {
    slots() {
      const index = streams.get(shown()?.videoId ?? -1)?.segmentIndex ?? [];
      return [...index].flatMap((reference) => {
        if (reference === null) return [];
        const startMs = reference.getStartTime() * 1000;
        return [{ startMs, durationMs: reference.getEndTime() * 1000 - startMs }];
      });
    },
    live: () => player.isLive(),
    lag() {
      const date = player.isLive() ? player.getPlayheadTimeAsDate() : null;
      return date === null ? undefined : Date.now() - date.getTime();
    },
    bitrate: () => shown()?.bandwidth ?? 0,
    height: (url) => heights.get(url),
  } satisfies Driver;
};
