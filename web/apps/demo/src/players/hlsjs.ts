import Hls, { type ErrorData, Events } from 'hls.js';
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
  hls.on(Events.MANIFEST_PARSED, () => {
    if (options.level !== undefined) hls.currentLevel = Math.min(options.level, hls.levels.length - 1);
    // A refusal (autoplay policy) leaves the controls on screen; nothing else to do.
    if (options.autoplay) video.play().catch(() => undefined);
  });
  hls.on(Events.FRAG_LOADED, (_, { frag }) => {
    if (frag.sn === 'initSegment' || frag.type !== 'main') return;
    listener.segment({
      url: frag.url,
      level: frag.level,
      sn: frag.sn,
      startMs: Math.round(frag.start * 1000),
      durationMs: Math.round(frag.duration * 1000),
      bytes: frag.stats.total || frag.stats.loaded,
    });
  });
  hls.on(Events.FRAG_CHANGED, (_, { frag }) => {
    if (shown >= 0 && frag.level !== shown) listener.switched();
    shown = frag.level;
  });
  hls.on(Events.ERROR, (_, data: ErrorData) => {
    if (!data.fatal) return;
    if (data.type === Hls.ErrorTypes.MEDIA_ERROR) {
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
    slots: () => details()?.fragments.map((f) => ({ startMs: f.start * 1000, durationMs: f.duration * 1000 })) ?? [],
    live: () => details()?.live ?? false,
    lag() {
      const date = details()?.live ? hls.playingDate : null;
      return date === null ? undefined : Date.now() - date.getTime();
    },
    bitrate: () => hls.levels[shown]?.bitrate ?? 0,
    height: (url) => hls.levels.find((level) => level.details?.fragments.some((f) => f.url === url))?.height,
  } satisfies Driver;
};
