import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { PageOptions, PageWindow, Player } from './watched.ts';

export const hlsScript = (): Buffer => readFileSync(createRequire(import.meta.url).resolve('hls.js/dist/hls.min.js'));

/** Runs in the page: an ordinary hls.js player. Uses nothing from outside, it is serialized. */
export function playHls(options: PageOptions): void {
  const page = window as unknown as PageWindow;
  const { Hls } = page;
  // A policy may keep it from the page.
  if (!Hls) return;
  const video = document.querySelector('video')!;
  const buffer = options.buffer ?? 20;
  const policy = Hls.DefaultConfig.fragLoadPolicy.default;
  // biome-ignore lint/suspicious/noExplicitAny: hls.js's reporter
  let reporter: any;
  const kB = { peer: 0, seed: 0 };
  if (options.cmcd) {
    document.querySelector('script[data-tracker]')?.addEventListener('load', () =>
      // biome-ignore lint/suspicious/noExplicitAny: the library's event
      page.leeway.on('segment', ({ result: { bytes } }: any) => {
        kB.peer += bytes.peer / 1000;
        kB.seed += bytes.seed / 1000;
        reporter?.updateCustomData({ 'com.leeway-p': Math.round(kB.peer), 'com.leeway-s': Math.round(kB.seed) });
      }),
    );
  }
  const cmcd = {
    version: 2,
    includeKeys: ['sid', 'v', 'com.leeway-p', 'com.leeway-s'],
    eventTargets: [{ url: `${options.tracker}/cmcd`, events: ['ps', 'rr'], includeKeys: ['sta', 'rc'] }],
    reporterCallback: (own: unknown) => {
      reporter = own;
    },
  };
  const hls = new Hls({
    fragLoadPolicy: {
      default: { ...policy, maxTimeToFirstByteMs: options.firstByteMs ?? policy.maxTimeToFirstByteMs },
    },
    startLevel: options.level ?? -1,
    maxBufferLength: buffer,
    maxMaxBufferLength: buffer,
    capLevelToPlayerSize: false,
    ...(options.cmcd && { cmcd }),
    ...(options.header && { xhrSetup: (xhr: XMLHttpRequest) => xhr.setRequestHeader(options.header!, '1') }),
  });
  page.__hls = hls;
  const played: Player['played'] = [];
  const loaded: Promise<Player['loaded'][number]>[] = [];
  const asked: NonNullable<Player['asked']> = [];
  const errors: Player['errors'] = [];
  if ((options.level ?? -1) >= 0) hls.on(Hls.Events.MANIFEST_PARSED, () => (hls.loadLevel = options.level));
  // biome-ignore lint/suspicious/noExplicitAny: hls.js event data
  hls.on(Hls.Events.FRAG_CHANGED, (_: string, data: any) => {
    const level = hls.levels[data.frag.level];
    played.push({
      level: data.frag.level,
      bitrate: level.bitrate,
      duration: data.frag.duration,
      at: performance.now(),
    });
  });
  // In which order hls.js asked, at which estimate, and what it gave up. They show why it chose a rendition.
  // biome-ignore lint/suspicious/noExplicitAny: hls.js event data
  hls.on(Hls.Events.FRAG_LOADING, (_: string, { frag }: any) =>
    asked.push({
      sn: frag.sn,
      level: frag.level,
      at: Math.round(performance.now()),
      kbps: Math.round(hls.bandwidthEstimate / 1000),
    }),
  );
  // biome-ignore lint/suspicious/noExplicitAny: hls.js event data
  const last = ({ frag }: any) => asked.findLast(({ sn, level }) => sn === frag.sn && level === frag.level);
  // biome-ignore lint/suspicious/noExplicitAny: hls.js event data
  hls.on(Hls.Events.FRAG_LOADED, (_: string, data: any) => {
    const { start, first, end } = data.frag.stats.loading;
    const entry = last(data);
    if (entry) entry.took = [first - start, end - first].map(Math.round);
  });
  // biome-ignore lint/suspicious/noExplicitAny: hls.js event data
  hls.on(Hls.Events.FRAG_LOAD_EMERGENCY_ABORTED, (_: string, data: any) => {
    const { loaded, total } = data.stats;
    const entry = last(data);
    if (entry) entry.gaveUp = { at: Math.round(performance.now()), loaded, total };
  });
  // biome-ignore lint/suspicious/noExplicitAny: hls.js event data
  hls.on(Hls.Events.ERROR, (_: string, data: any) =>
    errors.push({ type: data.type, details: data.details, fatal: data.fatal, code: data.response?.code ?? 0 }),
  );
  // The outermost loader sees exactly what the player is given. It is put around whatever is configured just before the
  // player makes a loader, so it does not matter when the library comes.
  const recorders = new WeakSet<object>();
  hls.on(Hls.Events.FRAG_LOADING, () => {
    const Inner = hls.config.fLoader ?? hls.config.loader;
    if (recorders.has(Inner)) return;
    // Not by a subclass: a loader's constructor may return an object of its own.
    // biome-ignore lint/suspicious/noExplicitAny: hls.js loader types
    function Recorder(loaderConfig: any) {
      const inner = new Inner(loaderConfig);
      const load = inner.load.bind(inner);
      // biome-ignore lint/suspicious/noExplicitAny: hls.js loader types
      inner.load = (context: any, config: any, callbacks: any) => {
        // biome-ignore lint/suspicious/noExplicitAny: hls.js loader types
        const onSuccess = (response: any, ...rest: unknown[]) => {
          if (crypto.subtle) {
            const copy = (response.data as ArrayBuffer).slice(0);
            loaded.push(
              crypto.subtle.digest('SHA-256', copy).then((d) => ({
                url: context.url,
                length: copy.byteLength,
                digest: Array.from(new Uint8Array(d), (byte) => byte.toString(16).padStart(2, '0')).join(''),
              })),
            );
          }
          callbacks.onSuccess(response, ...rest);
        };
        load(context, config, { ...callbacks, onSuccess });
      };
      return inner;
    }
    recorders.add(Recorder);
    hls.config.fLoader = Recorder;
  });
  hls.loadSource(options.manifest ?? '/media/film/master.m3u8');
  hls.attachMedia(video);
  video.play().catch(() => {});
  page.__player = async () => ({
    level: hls.currentLevel,
    estimate: hls.bandwidthEstimate,
    played: [...played],
    asked: [...asked],
    loaded: await Promise.all(loaded),
    errors: [...errors],
  });
}
