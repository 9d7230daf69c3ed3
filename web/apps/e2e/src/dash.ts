import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { PageOptions, Player } from './watched.ts';

/** dash.js as its makers publish it. */
export const dashScript = (): Buffer =>
  readFileSync(
    createRequire(import.meta.url)
      .resolve('dashjs')
      .replace(/modern\/\w+\/[^/]+$/, 'modern/umd/dash.all.min.js'),
  );

/** Runs in the page: an ordinary player of dash.js. Uses nothing from outside, it is serialized. */
export function playDash(options: PageOptions): void {
  // biome-ignore lint/suspicious/noExplicitAny: the page's dash.js, untyped here
  const page = window as any;
  const { dashjs } = page;
  const errors: Player['errors'] = [];
  const played: Player['played'] = [];
  const player = dashjs.MediaPlayer().create();
  page.__dash = player;
  const { events } = dashjs.MediaPlayer;
  const { level = -1, buffer = 20 } = options;
  player.updateSettings({
    streaming: {
      buffer: {
        bufferTimeDefault: buffer,
        bufferTimeAtTopQuality: buffer,
        bufferTimeAtTopQualityLongForm: buffer,
        // As dash.js 5.2 has it, a step up loads anew from the picture on the screen on (the new rendition's `fragmentDuration` is null
        // then, and 1.5 of it are kept). The buffer shrinks, rules step down again, and one of them holds that against the rendition.
        fastSwitchEnabled: false,
      },
      abr: {
        autoSwitchBitrate: { video: level < 0 },
        limitBitrateByPortal: false,
        // What is below the lowest rendition begins with it.
        initialBitrate: { video: level < 0 ? -1 : [1, 1_300, 10_000][level] },
      },
    },
  });
  // biome-ignore lint/suspicious/noExplicitAny: dash.js's error
  player.on(events.ERROR, ({ error }: any) =>
    errors.push({ type: 'dash.js', details: String(error?.message ?? error), fatal: true, code: error?.code ?? 0 }),
  );
  // biome-ignore lint/suspicious/noExplicitAny: dash.js's request
  player.on(events.FRAGMENT_LOADING_COMPLETED, ({ request, error }: any) => {
    if (error || request.type !== 'MediaSegment' || request.mediaType !== 'video') return;
    const { bandwidth, absoluteIndex = 0 } = request.representation;
    played.push({ level: absoluteIndex, bitrate: bandwidth, duration: request.duration, at: performance.now() });
  });
  player.initialize(document.querySelector('video'), options.manifest ?? '/media/film/master.mpd', true);
  page.__player = async () => ({
    level: played.at(-1)?.level ?? -1,
    estimate: 1000 * player.getAverageThroughput('video'),
    played: [...played],
    loaded: [],
    errors: [...errors],
  });
}
