import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { PageOptions, Player } from './watched.ts';

/** Shaka Player as its makers publish it. */
export const shakaScript = (): Buffer => readFileSync(createRequire(import.meta.url).resolve('shaka-player'));

/** Runs in the page: an ordinary Shaka player. Uses nothing from outside, it is serialized. */
export function playShaka(options: PageOptions): void {
  // biome-ignore lint/suspicious/noExplicitAny: the page's Shaka, untyped here
  const page = window as any;
  const { shaka } = page;
  const errors: Player['errors'] = [];
  const played: Player['played'] = [];
  // biome-ignore lint/suspicious/noExplicitAny: Shaka's error
  const note = ({ code, severity, data }: any) =>
    errors.push({ type: 'shaka', details: String(code), fatal: severity === 2, code: Number(data?.[1]) || 0 });
  shaka.polyfill.installAll();
  const player = new shaka.Player();
  page.__shaka = player;
  player.addEventListener('error', (event: { detail: object }) => note(event.detail));
  const { level = -1, buffer = 20 } = options;
  player.configure({
    streaming: { bufferingGoal: buffer },
    abr: {
      enabled: level < 0,
      // Chromium's own estimate is one of all windows, so of the lines of all viewers.
      useNetworkInformation: false,
      // Without rules it stays with what its first estimate chooses: what fits into 0.85 of it, and the lowest rendition of nothing.
      ...(level >= 0 && { defaultBandwidthEstimate: [1, 1_300_000, 10_000_000][level] }),
    },
  });
  const { SEGMENT } = shaka.net.NetworkingEngine.RequestType;
  /** Heights of the segments that came last, by where they begin; folders have the height. */
  const came = new Map<number, number>();
  // biome-ignore lint/suspicious/noExplicitAny: Shaka's response and context
  player.getNetworkingEngine().registerResponseFilter((type: number, { uri }: any, context: any) => {
    const [, height] = /(\d+)p\/seg-/.exec(uri) ?? [];
    // The first one comes for the playlist's sake, before there is a list of segments.
    if (type === SEGMENT && height) came.set(context?.segment?.getStartTime() ?? 0, Number(height));
  });
  // What is played: of a segment that comes while the rendition changes Shaka plays nothing, and loads it anew.
  player.addEventListener('segmentappended', ({ start, end }: { start: number; end: number }) => {
    const height = came.get(start);
    const track = player.getVariantTracks().find((one: { height: number }) => one.height === height);
    if (track) played.push({ level: height!, bitrate: track.bandwidth, duration: end - start, at: performance.now() });
  });
  const video = document.querySelector('video')!;
  video.autoplay = true;
  player
    .attach(video)
    .then(() => player.load(options.manifest ?? '/media/film/master.m3u8'))
    .catch(note);
  page.__player = async () => ({
    level: played.at(-1)?.level ?? -1,
    estimate: player.getStats().estimatedBandwidth,
    played: [...played],
    loaded: [],
    errors: [...errors],
  });
}
