import { join } from 'node:path';
import { defineAdapter, type Stage } from '@leeway/conformance';
import { bundle } from './bundle.ts';

/** Runs in the page: the elements of Video.js 10, which play HLS by the hls.js that comes with them. */
function play(stage: Stage): Promise<unknown> {
  // biome-ignore lint/suspicious/noExplicitAny: the page's hls.js, untyped here
  const { Hls, recordHls } = window as any;
  // biome-ignore lint/suspicious/noExplicitAny: an element of Video.js 10
  const media = stage.root.querySelector('hls-video') as any;
  stage.watch(media.target);
  media.config = {
    maxBufferLength: stage.buffer,
    maxMaxBufferLength: stage.buffer,
    lowLatencyMode: stage.lowLatency,
    // Its own 30 s make hls.js stop loading for seconds at a stream of parts.
    ...(stage.lowLatency && { backBufferLength: Number.POSITIVE_INFINITY }),
    ...(stage.cmcd && { cmcd: { version: 2, useHeaders: stage.cmcd === 'headers' } }),
    ...(stage.clearKey && {
      emeEnabled: true,
      drmSystems: { 'org.w3.clearkey': { licenseUrl: new URL(stage.clearKey.license, location.href).href } },
    }),
  };
  media.src = stage.manifest;
  // It makes its player of hls.js behind this task.
  return new Promise((made) => setTimeout(made)).then(() => {
    recordHls(Hls, media.engine, {
      ...stage,
      // It begins to load twice, and hls.js says of what it loads at that moment that it was given up.
      error: (code: string, fatal: boolean) => code !== 'aborted' && stage.error(code, fatal),
    });
    media.play().catch(() => {});
  });
}

export const videojs10 = defineAdapter({
  name: 'Video.js 10',
  format: 'hls',
  parts: true,
  scripts: [{ file: bundle('videojs10-page.js') }, { file: join(import.meta.dirname, 'record-hls.js') }],
  markup: '<video-player><hls-video muted playsinline preload="auto"></hls-video></video-player>',
  play,
});
