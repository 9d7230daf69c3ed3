import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Origin } from './origin.ts';
import { playShaka, shakaScript } from './shaka.ts';

/** How the test page is put together; travels in its query string. */
export interface PageOptions {
  /** Tracker's base URL (http://host:port); without it the page has no Leeway. */
  tracker?: string;
  /** Where the drop-in's tag stands with respect to hls.js. */
  order?: 'before' | 'after';
  /** Another player than hls.js, or none. */
  player?: 'hls' | 'shaka' | 'none';
  /** Rendition by index in the manifest; -1: the player chooses. */
  level?: number;
  manifest?: string;
  /** Seconds that the player buffers ahead. */
  buffer?: number;
  /** How long the player waits for a segment's first byte, in ms. */
  firstByteMs?: number;
  /** The drop-in's URL, where it is not the tracker's own copy. */
  script?: string;
  /** Further attributes of the drop-in's tag. */
  attributes?: string;
  /** A header that the player's requests carry by its own xhrSetup: each is asked for by a preflight. */
  header?: string;
  /** Content security policy; every script of the page has the nonce `e2e` then. */
  policy?: string;
  /** Further headers of the page's answer. */
  headers?: Record<string, string>;
}

const hlsScript = readFileSync(createRequire(import.meta.url).resolve('hls.js/dist/hls.min.js'));

/** Puts the test page (`/watch.html`) and hls.js on an origin. */
export function installPage(origin: Origin): void {
  origin.pages.set('/hls.js', () => hlsScript);
  origin.pages.set('/shaka.js', shakaScript);
  origin.pages.set('/favicon.ico', () => '');
  origin.pages.set('/watch.html', (url, answer) => {
    const options = JSON.parse(url.searchParams.get('o') ?? '{}') as PageOptions;
    if (options.policy) answer.setHeader('Content-Security-Policy', options.policy);
    for (const [name, value] of Object.entries(options.headers ?? {})) answer.setHeader(name, value);
    return html(options);
  });
  // Another site's page around it.
  origin.pages.set('/frame.html', (url) => {
    const src = url.searchParams.get('src')!.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
    return `<!doctype html><title>around</title><iframe allow="autoplay" width="900" height="560" src="${src}"></iframe>`;
  });
}

export function pagePath(options: PageOptions): string {
  return `/watch.html?o=${encodeURIComponent(JSON.stringify(options))}`;
}

function html(options: PageOptions): string {
  const nonce = options.policy ? ' nonce="e2e"' : '';
  const kind = options.player ?? 'hls';
  const player = kind === 'none' ? '' : `<script${nonce} src="/${kind}.js"></script>`;
  const plays = kind === 'shaka' ? [play, playShaka] : [play];
  const leeway = options.tracker
    ? `<script${nonce} ${options.order ? '' : 'async '}src="${options.script ?? `${options.tracker}/leeway.js`}" data-tracker="${options.tracker.replace(/^http/, 'ws')}" ${options.attributes ?? ''}></script>`
    : '';
  const scripts = options.order === 'before' ? leeway + player : player + leeway;
  return `<!doctype html><meta charset="utf-8"><title>e2e</title>
<video muted playsinline width="854" height="480"></video>
${scripts}
<script${nonce}>${plays.map((f) => `(${f.toString()})(${JSON.stringify(options)});`).join('')}</script>`;
}

/** What the page's own script records about the player; see Viewer.player(). */
export interface Player {
  level: number;
  estimate: number;
  /** Levels of the fragments as they were played, with their durations in seconds. */
  played: { level: number; bitrate: number; duration: number; at: number }[];
  /** URL, length and SHA-256 of every media response that the player was given. */
  loaded: { url: string; length: number; digest: string }[];
  errors: { type: string; details: string; fatal: boolean; code: number }[];
}

/** What the library told the page, by its events. */
export interface Told {
  notices: { code: string; message: string; hint: string }[];
  links: { peer: string; role: string; at: number }[];
  unlinks: { peer: string; role: string; reason: string; banned: boolean; at: number }[];
  segments: {
    url: string;
    source: string;
    reason?: string;
    bytes: { origin: number; seed: number; peer: number };
    at: number;
  }[];
  contradictions: number;
}

/** The page's globals. Not declared globally: the demo's own declarations share the program. */
export interface PageWindow {
  // biome-ignore lint/suspicious/noExplicitAny: the page's hls.js, untyped here
  Hls: any;
  // biome-ignore lint/suspicious/noExplicitAny: the library's public face, checked by its own tests
  leeway: any;
  // biome-ignore lint/suspicious/noExplicitAny: the demo's handle for tests
  __demo: any;
  // biome-ignore lint/suspicious/noExplicitAny: the page's player, untyped here
  __hls: any;
  __player: () => Promise<Player>;
  __told: Told;
}

/** Runs in the page: an ordinary hls.js player. Uses nothing from outside, it is serialized. */
function play(options: PageOptions): void {
  const told: Told = { notices: [], links: [], unlinks: [], segments: [], contradictions: 0 };
  const page = window as unknown as PageWindow;
  page.__told = told;
  const { Hls } = page;
  const listen = () => {
    const { leeway } = page;
    if (!leeway) return false;
    // What was said before this script ran.
    const { notice } = leeway.stats();
    if (notice) told.notices.push({ ...notice });
    leeway.on('notice', (notice: Told['notices'][number]) => told.notices.push({ ...notice }));
    leeway.on('link', ({ peer, role }: Told['links'][number]) =>
      told.links.push({ peer, role, at: performance.now() }),
    );
    leeway.on('unlink', ({ peer, role, reason, banned }: Told['unlinks'][number]) =>
      told.unlinks.push({ peer, role, reason, banned, at: performance.now() }),
    );
    // biome-ignore lint/suspicious/noExplicitAny: the library's event
    leeway.on('segment', ({ url, result }: any) =>
      told.segments.push({
        url,
        source: result.source,
        reason: result.reason,
        bytes: result.bytes,
        at: performance.now(),
      }),
    );
    leeway.on('contradiction', () => told.contradictions++);
    return true;
  };
  // An async tag runs when it comes.
  if (!listen()) document.querySelector('script[data-tracker]')?.addEventListener('load', listen);
  if (!Hls) return;
  const video = document.querySelector('video')!;
  const buffer = options.buffer ?? 20;
  const policy = Hls.DefaultConfig.fragLoadPolicy.default;
  const hls = new Hls({
    fragLoadPolicy: {
      default: { ...policy, maxTimeToFirstByteMs: options.firstByteMs ?? policy.maxTimeToFirstByteMs },
    },
    startLevel: options.level ?? -1,
    maxBufferLength: buffer,
    maxMaxBufferLength: buffer,
    capLevelToPlayerSize: false,
    ...(options.header && { xhrSetup: (xhr: XMLHttpRequest) => xhr.setRequestHeader(options.header!, '1') }),
  });
  page.__hls = hls;
  const played: Player['played'] = [];
  const loaded: Promise<Player['loaded'][number]>[] = [];
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
    loaded: await Promise.all(loaded),
    errors: [...errors],
  });
}
