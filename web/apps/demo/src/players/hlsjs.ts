import Hls, { type ErrorData, Events, type Level } from 'hls.js';
import type { Driver, Start } from './driver';

declare global {
  interface Window {
    /** Where the drop-in looks for the page's player. */
    Hls?: typeof Hls;
  }
}

/** An ordinary player of hls.js. */
export const start: Start = (video, src, options, listener) => {
  window.Hls = Hls;
  const hls = new Hls({
    maxBufferLength: options.maxBuffer,
    maxMaxBufferLength: options.maxBuffer,
    backBufferLength: 30,
    ...(options.level === undefined ? {} : { startLevel: options.level }),
  });
  let shown = -1;
  /** Where the media failed last, seconds. */
  let failedAt: number | undefined;
  hls.on(Events.MANIFEST_PARSED, () => {
    if (options.level !== undefined) hls.currentLevel = Math.min(options.level, hls.levels.length - 1);
    // A refusal (autoplay policy) leaves the controls on screen; nothing else to do.
    if (options.autoplay) video.play().catch(() => undefined);
  });
  hls.on(Events.LEVEL_UPDATED, (_, { details }) => {
    // hls.js 1.7 stops loading for seconds if it trims its buffer as a part is added (docs/conformance.md). The browser trims by itself.
    if (details.partList) hls.config.backBufferLength = Number.POSITIVE_INFINITY;
  });
  hls.on(Events.FRAG_LOADED, (_, { frag, part }) => {
    if (frag.sn === 'initSegment' || frag.type !== 'main') return;
    const { url, start, duration, stats } = part ?? frag;
    listener.segment({
      url,
      level: frag.level,
      sn: frag.sn,
      startMs: Math.round(start * 1000),
      durationMs: Math.round(duration * 1000),
      bytes: stats.total || stats.loaded,
    });
  });
  hls.on(Events.FRAG_CHANGED, (_, { frag }) => {
    if (shown >= 0 && frag.level !== shown) listener.switched();
    shown = frag.level;
  });
  hls.on(Events.ERROR, (_, data: ErrorData) => {
    if (!data.fatal) return;
    // What fails twice at one place does not play; of a film whose codecs the browser lacks hls.js has no levels.
    if (data.type === Hls.ErrorTypes.MEDIA_ERROR && hls.levels.length > 0 && video.currentTime !== failedAt) {
      failedAt = video.currentTime;
      hls.recoverMediaError();
      return;
    }
    const status = data.response?.code ? ` (HTTP ${data.response.code})` : '';
    listener.failed(`The film does not load${status}: ${data.details}.`);
  });
  hls.attachMedia(video);
  hls.loadSource(src);

  /** The playlist of the rendition on screen, else of the one that loads. */
  const details = () => hls.levels[hls.currentLevel]?.details ?? hls.levels[hls.loadLevel]?.details;
  return {
    slots() {
      // Of low latency the segment that is still being made is played, too, part by part.
      const { fragments = [], fragmentHint } = details() ?? {};
      const shown = fragmentHint?.duration ? [...fragments, fragmentHint] : fragments;
      return shown.map((f) => ({ startMs: f.start * 1000, durationMs: f.duration * 1000 }));
    },
    live: () => details()?.live ?? false,
    lag() {
      const date = details()?.live ? hls.playingDate : null;
      return date === null ? undefined : Date.now() - date.getTime();
    },
    bitrate: () => hls.levels[shown]?.bitrate ?? 0,
    height(url) {
      const named = (l: Level) => [...(l.details?.fragments ?? []), ...(l.details?.partList ?? [])];
      return hls.levels.find((level) => named(level).some((one) => one.url === url))?.height;
    },
  } satisfies Driver;
};
