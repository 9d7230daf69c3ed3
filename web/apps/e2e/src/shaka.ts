import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { PageOptions, Player } from './watched.ts';

/** Shaka Player as its makers publish it. */
export const shakaScript = (): Buffer => readFileSync(createRequire(import.meta.url).resolve('shaka-player'));

/** Runs in the page: an ordinary Shaka player of the lowest rendition. Uses nothing from outside, it is serialized. */
export function playShaka(options: PageOptions): void {
  // biome-ignore lint/suspicious/noExplicitAny: the page's Shaka, untyped here
  const page = window as any;
  const { shaka } = page;
  const errors: Player['errors'] = [];
  // biome-ignore lint/suspicious/noExplicitAny: Shaka's error
  const note = ({ code, severity, data }: any) =>
    errors.push({ type: 'shaka', details: String(code), fatal: severity === 2, code: Number(data?.[1]) || 0 });
  shaka.polyfill.installAll();
  const player = new shaka.Player();
  page.__shaka = player;
  player.addEventListener('error', (event: { detail: object }) => note(event.detail));
  const buffer = options.buffer ?? 20;
  player.configure({
    streaming: { bufferingGoal: buffer },
    abr: { enabled: false, useNetworkInformation: false, defaultBandwidthEstimate: 1 },
  });
  const video = document.querySelector('video')!;
  video.autoplay = true;
  player
    .attach(video)
    .then(() => player.load(options.manifest ?? '/media/film/master.m3u8'))
    .catch(note);
  page.__player = async () => ({
    level: 0,
    estimate: player.getStats().estimatedBandwidth,
    played: [],
    loaded: [],
    errors: [...errors],
  });
}
