import * as dashjs from 'dashjs';
import type { Slot } from '../timeline';
import type { Driver, Start } from './driver';

/** What dash.js asks for, by shape. */
interface FragmentRequest {
  type: string;
  mediaType: string;
  url: string;
  index: number;
  startTime: number;
  duration: number;
  representation?: { bandwidth: number; height?: number };
  /** Bytes as they came. */
  traces?: { b: number[] }[];
}

/** An ordinary player of dash.js. */
export const start: Start = (video, src, options, listener) => {
  // The drop-in takes the constructor's place here, as on a page that loads the script of dash.js.
  const library = { ...dashjs };
  Object.assign(window, { dashjs: library });
  const player = library.MediaPlayer().create();
  const { events } = library.MediaPlayer;
  const slots = new Map<number, Slot>();
  const heights = new Map<string, number | undefined>();
  const renditions = () => player.getRepresentationsByType('video');
  const shown = () => {
    try {
      return player.getCurrentRepresentationForType('video');
    } catch {
      return null; // before the MPD has come
    }
  };
  player.updateSettings({
    streaming: {
      // These are asked for one codec, and find that no browser plays segments with picture and sound.
      capabilities: { useMediaCapabilitiesApi: false },
      buffer: {
        bufferTimeDefault: options.maxBuffer,
        bufferTimeAtTopQuality: options.maxBuffer,
        bufferTimeAtTopQualityLongForm: options.maxBuffer,
        bufferToKeep: 30,
      },
      ...(options.level === undefined ? {} : { abr: { autoSwitchBitrate: { video: false } } }),
    },
  });
  const ofMedia = (heard: (request: FragmentRequest, bytes: number) => void) => (event: object) => {
    const { request, response } = event as { request: FragmentRequest; response?: ArrayBuffer };
    if (request.type !== 'MediaSegment' || request.mediaType !== 'video') return;
    // Of a segment that comes while it grows the response has nothing that was played already.
    const came = request.traces?.reduce((sum, { b: [bytes = 0] }) => sum + bytes, 0);
    heard(request, response?.byteLength || came || 0);
  };
  player.on(
    events.FRAGMENT_LOADING_STARTED,
    ofMedia(({ url, index, startTime, duration, representation }) => {
      slots.set(index, { startMs: startTime * 1000, durationMs: duration * 1000 });
      heights.set(url, representation?.height);
    }),
  );
  player.on(
    events.FRAGMENT_LOADING_COMPLETED,
    ofMedia(({ url, index, startTime, duration, representation }, bytes) => {
      const startMs = Math.round(startTime * 1000);
      const level = renditions().findIndex(({ bandwidth }) => bandwidth === representation?.bandwidth);
      listener.segment({ url, level, sn: index, startMs, durationMs: Math.round(duration * 1000), bytes });
    }),
  );
  player.on(events.QUALITY_CHANGE_RENDERED, (event: object) => {
    const { mediaType, oldRepresentation } = event as { mediaType: string; oldRepresentation?: object };
    if (mediaType === 'video' && oldRepresentation) listener.switched();
  });
  player.on(events.STREAM_INITIALIZED, () => {
    if (options.level === undefined) return;
    player.setRepresentationForTypeByIndex('video', Math.min(options.level, renditions().length - 1), true);
  });
  player.on(events.ERROR, (event: object) => {
    const { error } = event as { error: { code?: number; message?: string } | string };
    const said = typeof error === 'string' ? error : `${error.code}`;
    listener.failed(`The film does not load: dash.js says ${said}.`);
  });
  // Of a relative address it says in the log that it is none.
  player.initialize(video, new URL(src, location.href).href, options.autoplay);

  return {
    slots() {
      const known = [...slots].sort(([a], [b]) => a - b);
      const [first] = known;
      if (first === undefined || player.isDynamic()) return known.map(([, slot]) => slot);
      // dash.js tells of a segment when it asks for it. Those of a film are as long as the first, until then.
      const { durationMs } = first[1];
      const count = Math.max(known.at(-1)![0] + 1, Math.round((player.duration() * 1000) / durationMs));
      return Array.from({ length: count }, (_, i) => slots.get(i) ?? { startMs: i * durationMs, durationMs });
    },
    live: () => player.isReady() && player.isDynamic(),
    lag: () => (player.isReady() && player.isDynamic() ? player.getCurrentLiveLatency() * 1000 : undefined),
    bitrate: () => shown()?.bandwidth ?? 0,
    height: (url) => heights.get(url),
  } satisfies Driver;
};
