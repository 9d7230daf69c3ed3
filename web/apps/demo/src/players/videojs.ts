import 'video.js/dist/video-js.min.css';
import videojs from 'video.js/dist/video.min.js';
import type { Driver, Start } from './driver';

/** The parts of Video.js and its engine (VHS) that are used here, by shape: VHS has no types. */
interface Resource {
  duration: number;
  resolvedUri: string;
}
interface Segment extends Resource {
  /** Those of a low-latency stream, of its latest segments. */
  parts?: Resource[];
  /** When it was made, by the playlist. */
  dateTimeObject?: Date;
}
interface Playlist {
  endList?: boolean;
  segments?: Segment[];
  attributes?: { BANDWIDTH?: number; RESOLUTION?: { height: number } };
}
interface Vhs {
  playlists?: { main?: { playlists: Playlist[] }; media(): Playlist | undefined };
  representations(): { bandwidth: number; enabled(on: boolean): void }[];
  xhr: { onResponse(heard: (request: XhrRequest, error: unknown) => void): void };
}
interface XhrRequest {
  requestType: string;
  uri: string;
  status: number;
  response: ArrayBuffer | null;
}
interface VideojsPlayer {
  on(event: string, listener: () => void): void;
  tech(safety: true): { vhs?: Vhs; on(event: string, listener: () => void): void } | undefined;
  src(source: { src: string; type: string }): void;
  seekable(): TimeRanges;
  error(): { code: number; status?: number } | null;
}
interface Videojs {
  (video: HTMLVideoElement, options: object): VideojsPlayer;
  Vhs: { GOAL_BUFFER_LENGTH: number; MAX_GOAL_BUFFER_LENGTH: number };
  log: { level(level: string): void };
}

/** An ordinary player of Video.js, with its own controls. */
export const start: Start = (video, src, options, listener) => {
  const library = videojs as unknown as Videojs;
  Object.assign(window, { videojs: library });
  // It warns of each setting of the buffer.
  library.log.level('error');
  library.Vhs.GOAL_BUFFER_LENGTH = library.Vhs.MAX_GOAL_BUFFER_LENGTH = options.maxBuffer;
  video.classList.add('video-js');
  const player = library(video, { fluid: true, preload: 'auto', html5: { vhs: { llhls: true } } });
  const vhs = () => player.tech(true)?.vhs;
  const playlists = () =>
    [...(vhs()?.playlists?.main?.playlists ?? [])].sort(
      (a, b) => (a.attributes?.BANDWIDTH ?? 0) - (b.attributes?.BANDWIDTH ?? 0),
    );
  const shown = () => vhs()?.playlists?.media();
  const live = () => shown() !== undefined && !shown()!.endList;
  /** Where the playlist begins, milliseconds. */
  const begin = () => (live() && player.seekable().length > 0 ? player.seekable().start(0) * 1000 : 0);
  const place = (resources: Resource[], startMs: number) => {
    let at = startMs;
    return resources.map(({ duration, resolvedUri }) => {
      const startMs = at;
      at += duration * 1000;
      return { startMs, durationMs: duration * 1000, url: resolvedUri };
    });
  };
  const slots = (list?: Playlist) => place(list?.segments ?? [], begin());
  const withUrl = (url: string) => (list: Playlist) =>
    !!list.segments?.some(({ resolvedUri, parts }) => resolvedUri === url || parts?.some((p) => p.resolvedUri === url));
  /** Where a segment of a playlist is, or a part of one. */
  const find = (list: Playlist, url: string) => {
    const segments = slots(list);
    for (const [sn, whole] of segments.entries()) {
      const all = [whole, ...place(list.segments?.[sn]?.parts ?? [], whole.startMs)];
      const found = all.find((one) => one.url === url);
      if (found) return { sn, ...found };
    }
    return undefined;
  };
  player.on('xhr-hooks-ready', () => {
    vhs()!.xhr.onResponse(({ requestType, uri, status, response }, error) => {
      const lists = playlists();
      const level = lists.findIndex(withUrl(uri));
      if (error || requestType !== 'segment' || !/^20[06]$/.test(String(status)) || level < 0) return;
      const { sn, startMs, durationMs } = find(lists[level]!, uri)!;
      const bytes = response?.byteLength ?? 0;
      listener.segment({
        url: uri,
        level,
        sn,
        startMs: Math.round(startMs),
        durationMs: Math.round(durationMs),
        bytes,
      });
    });
  });
  player.on('loadedmetadata', () => {
    if (options.level === undefined) return;
    const renditions =
      vhs()
        ?.representations()
        .sort((a, b) => a.bandwidth - b.bandwidth) ?? [];
    const level = Math.min(options.level, renditions.length - 1);
    for (const [i, rendition] of renditions.entries()) rendition.enabled(i === level);
  });
  let rendition: Playlist | undefined;
  player.tech(true)?.on('mediachange', () => {
    if (rendition !== undefined && rendition !== shown()) listener.switched();
    rendition = shown();
  });
  player.on('error', () => {
    const { status, code } = player.error() ?? { code: 0 };
    listener.failed(`The film does not load${status ? ` (HTTP ${status})` : ''}: Video.js says ${code}.`);
  });
  player.src({ src, type: 'application/x-mpegurl' });
  if (options.autoplay) video.play().catch(() => undefined);

  return {
    slots: () => slots(shown()),
    live,
    lag() {
      const date = live() ? shown()?.segments?.[0]?.dateTimeObject : undefined;
      return date && Date.now() - (date.getTime() + video.currentTime * 1000 - begin());
    },
    bitrate: () => shown()?.attributes?.BANDWIDTH ?? 0,
    height: (url) => playlists().find(withUrl(url))?.attributes?.RESOLUTION?.height,
  } satisfies Driver;
};
