/** What the kit's page sees of players and of the library, from below them. */

/** One video element. Times in ms since the page's navigation. */
export interface Picture {
  /** First frame; -1 before. */
  startup: number;
  stalls: { at: number; ms: number }[];
  currentTime: number;
  /** What has been played, s: where a player jumps over a gap, less than the playhead has moved. */
  played: number;
  duration: number;
  bufferedAhead: number;
  ended: boolean;
  error: string;
}

/** What the library said of one segment. */
export interface Shared {
  url: string;
  startMs: number;
  bytes: { origin: number; seed: number; peer: number };
  reason?: string;
}

export interface PlayerSeen {
  picture: Picture | null;
  received: { url: string; range: string; length: number; digest: string }[];
  errors: { code: string; fatal: boolean }[];
}

export interface PageSeen {
  players: PlayerSeen[];
  pageErrors: string[];
  /** The library is there, and has joined. */
  joined: boolean;
  shared: Shared[];
  notices: string[];
  contradictions: number;
  /** Links open now. */
  links: number;
}

/** The page's side of a stage; `adapter.ts` has what a player gets of it. */
export interface KitWindow {
  __stage(i: number): {
    root: HTMLElement;
    watch(video: HTMLVideoElement): void;
    received(media: { url: string; range?: string; data: ArrayBuffer | ArrayBufferView }): void;
    error(code: string, fatal: boolean): void;
  };
  __read(): Promise<PageSeen>;
  /** The video elements, for cases that seek. */
  __videos: HTMLVideoElement[];
}

/** Runs in the page before any other script. Uses nothing from outside: it is passed as source text. */
export function probe(): void {
  const page = window as unknown as KitWindow & { leeway?: Record<string, never> };
  const pictures = new Map<HTMLVideoElement, { startup: number; stalls: Picture['stalls']; since: number }>();
  const pageErrors: string[] = [];
  const shared: Shared[] = [];
  const notices: string[] = [];
  let contradictions = 0;
  page.__videos = [];

  const watch = (video: HTMLVideoElement) => {
    if (pictures.has(video)) return;
    const seen = { startup: -1, stalls: [] as Picture['stalls'], since: -1 };
    pictures.set(video, seen);
    const end = () => {
      const ms = performance.now() - seen.since;
      // A wait shorter than a few frames is the decoder's and cannot be seen.
      if (seen.since >= 0 && ms > 100) seen.stalls.push({ at: seen.since, ms });
      seen.since = -1;
    };
    video.requestVideoFrameCallback(() => {
      seen.startup = performance.now();
    });
    video.addEventListener('waiting', () => {
      const atEnd = video.duration - video.currentTime < 0.5;
      if (seen.startup >= 0 && !video.seeking && !video.ended && !atEnd && seen.since < 0)
        seen.since = performance.now();
    });
    video.addEventListener('playing', end);
    video.addEventListener('timeupdate', () => video.readyState >= 3 && end());
    video.addEventListener('seeking', () => {
      seen.since = -1;
    });
  };
  for (const type of ['loadstart', 'loadedmetadata', 'play']) {
    document.addEventListener(type, ({ target }) => target instanceof HTMLVideoElement && watch(target), true);
  }
  addEventListener('error', (event) => pageErrors.push(String(event.message || 'error')));
  addEventListener('unhandledrejection', (event) => pageErrors.push(`unhandled rejection: ${String(event.reason)}`));

  const listen = () => {
    // biome-ignore lint/suspicious/noExplicitAny: the library's public face, checked by its own tests
    const leeway = page.leeway as any;
    if (!leeway) return setTimeout(listen, 20);
    const said = leeway.stats().notice;
    if (said) notices.push(said.code);
    leeway.on('notice', ({ code }: { code: string }) => notices.push(code));
    leeway.on('contradiction', () => contradictions++);
    // biome-ignore lint/suspicious/noExplicitAny: the library's event
    leeway.on('segment', ({ url, startMs, result }: any) =>
      shared.push({ url, startMs, bytes: { ...result.bytes }, reason: result.reason }),
    );
  };
  listen();

  const stages: { received: Promise<PlayerSeen['received'][number]>[]; errors: PlayerSeen['errors'] }[] = [];
  const videos: (HTMLVideoElement | undefined)[] = [];
  page.__stage = (i) => {
    const stage = { received: [] as (typeof stages)[number]['received'], errors: [] as PlayerSeen['errors'] };
    stages[i] = stage;
    return {
      root: document.querySelectorAll<HTMLElement>('.stage')[i]!,
      watch(video) {
        videos[i] = video;
        watch(video);
      },
      received({ url, range, data }) {
        const view = ArrayBuffer.isView(data)
          ? new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength)
          : new Uint8Array(data);
        const copy = view.slice();
        stage.received.push(
          crypto.subtle.digest('SHA-256', copy).then((digest) => ({
            url: new URL(url, location.href).href,
            range: range ?? '',
            length: copy.byteLength,
            digest: Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join(''),
          })),
        );
      },
      error: (code, fatal) => stage.errors.push({ code, fatal }),
    };
  };

  const pictureOf = (video: HTMLVideoElement | undefined): Picture | null => {
    const seen = video && pictures.get(video);
    if (!seen) return null;
    let bufferedAhead = 0;
    for (let i = 0; i < video.buffered.length; i++) {
      if (video.buffered.start(i) <= video.currentTime + 0.1 && video.buffered.end(i) >= video.currentTime) {
        bufferedAhead = video.buffered.end(i) - video.currentTime;
      }
    }
    let played = 0;
    for (let i = 0; i < video.played.length; i++) played += video.played.end(i) - video.played.start(i);
    const open = seen.since >= 0 ? performance.now() - seen.since : 0;
    return {
      startup: seen.startup,
      stalls: open > 100 ? [...seen.stalls, { at: seen.since, ms: open }] : [...seen.stalls],
      currentTime: video.currentTime,
      played,
      duration: video.duration,
      bufferedAhead,
      ended: video.ended,
      error: video.error?.message ?? '',
    };
  };

  page.__read = async () => {
    const roots = [...document.querySelectorAll('.stage')];
    page.__videos = roots.map((root, i) => videos[i] ?? root.querySelector('video')!);
    // biome-ignore lint/suspicious/noExplicitAny: the library's public face, checked by its own tests
    const title = (page.leeway as any)?.stats().titles[0];
    return {
      players: await Promise.all(
        page.__videos.map(async (video, i) => ({
          picture: pictureOf(video),
          received: await Promise.all(stages[i]?.received ?? []),
          errors: [...(stages[i]?.errors ?? [])],
        })),
      ),
      pageErrors: [...pageErrors],
      joined: !!title,
      shared: [...shared],
      notices: [...notices],
      contradictions,
      links: title?.links?.open ?? 0,
    };
  };
}
