import { createRequire } from 'node:module';
import { defineAdapter, type Stage } from '@leeway/conformance';
import { hlsScripts } from './hlsjs.ts';

/** Runs in the page: Plyr over a player of hls.js, as its makers show it. */
function play(stage: Stage): void {
  // biome-ignore lint/suspicious/noExplicitAny: the page's hls.js and Plyr, untyped here
  const { Hls, Plyr, recordHls } = window as any;
  const video = stage.root.querySelector('video')!;
  const hls = new Hls({
    maxBufferLength: stage.buffer,
    maxMaxBufferLength: stage.buffer,
    ...(stage.cmcd && { cmcd: { version: 2, useHeaders: stage.cmcd === 'headers' } }),
    ...(stage.clearKey && {
      emeEnabled: true,
      drmSystems: { 'org.w3.clearkey': { licenseUrl: new URL(stage.clearKey.license, location.href).href } },
    }),
  });
  recordHls(Hls, hls, stage);
  hls.loadSource(stage.manifest);
  hls.attachMedia(video);
  // Icons and the picture of a stopped player are on its makers' server.
  const player = new Plyr(video, { muted: true, loadSprite: false, blankVideo: '' });
  Promise.resolve(player.play()).catch(() => {});
}

export const plyr = defineAdapter({
  name: 'Plyr 3.8',
  format: 'hls',
  scripts: [...hlsScripts(), { file: createRequire(import.meta.url).resolve('plyr') }],
  play,
});
