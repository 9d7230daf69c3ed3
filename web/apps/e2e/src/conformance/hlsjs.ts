import { createRequire } from 'node:module';
import { type Adapter, defineAdapter, type Stage } from '@leeway/conformance';

const file = (path: string) => createRequire(import.meta.url).resolve(path);

/** Runs in the page: an ordinary hls.js player. */
function play(stage: Stage): void {
  // biome-ignore lint/suspicious/noExplicitAny: the page's hls.js, untyped here
  const { Hls } = window as any;
  const video = stage.root.querySelector('video')!;
  const hls = new Hls({
    maxBufferLength: stage.buffer,
    maxMaxBufferLength: stage.buffer,
    lowLatencyMode: stage.lowLatency,
    ...(stage.cmcd && { cmcd: { version: 2, includeKeys: ['br', 'd', 'ot', 'sid', 'cid', 'v', 'bl', 'sf'] } }),
    ...(stage.clearKey && {
      emeEnabled: true,
      drmSystems: { 'org.w3.clearkey': { licenseUrl: new URL(stage.clearKey.license, location.href).href } },
    }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: hls.js event data
  hls.on(Hls.Events.ERROR, (_: string, { details, fatal }: any) => stage.error(details, fatal));
  // The outermost loader sees what the player is given. Whatever is configured by then is wrapped, so it does not matter when
  // the library comes. An event for every load is too late for that load, hence also those before.
  let newest: object | undefined;
  const wrap = () => {
    const Inner = hls.config.fLoader ?? hls.config.loader;
    if (Inner === newest) return;
    // Not by a subclass: a loader's constructor may return an object of its own.
    // biome-ignore lint/suspicious/noExplicitAny: hls.js loader types
    function Recorder(loaderConfig: any) {
      const inner = new Inner(loaderConfig);
      // The library may have wrapped this one.
      const outermost = hls.config.fLoader === Recorder;
      const load = inner.load.bind(inner);
      // biome-ignore lint/suspicious/noExplicitAny: hls.js loader types
      inner.load = (context: any, config: any, callbacks: any) => {
        const { rangeStart, rangeEnd } = context;
        const range = rangeEnd ? `bytes=${rangeStart}-${rangeEnd - 1}` : undefined;
        // biome-ignore lint/suspicious/noExplicitAny: hls.js loader types
        const onSuccess = (response: any, ...rest: unknown[]) => {
          if (outermost) stage.received({ url: context.url, range, data: response.data });
          callbacks.onSuccess(response, ...rest);
        };
        load(context, config, { ...callbacks, onSuccess });
      };
      return inner;
    }
    newest = Recorder;
    hls.config.fLoader = Recorder;
  };
  for (const event of ['MANIFEST_PARSED', 'LEVEL_LOADING', 'AUDIO_TRACK_LOADING', 'FRAG_LOADING']) {
    hls.on(Hls.Events[event], wrap);
  }
  hls.loadSource(stage.manifest);
  hls.attachMedia(video);
  video.play().catch(() => {});
}

const row = (name: string, path: string, skips: Adapter['skips'] = {}) =>
  defineAdapter({ name, format: 'hls', scripts: [{ file: file(path) }], play, skips });

export const hlsjs17 = row('hls.js 1.7', 'hls.js/dist/hls.min.js');
export const hlsjs16 = row('hls.js 1.6', 'hls.js-1.6/dist/hls.min.js');
export const hlsjs15 = row('hls.js 1.5', 'hls.js-1.5/dist/hls.min.js');
