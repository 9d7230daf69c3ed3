import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type Adapter, defineAdapter, type Stage } from '@leeway/conformance';

const { resolve } = createRequire(import.meta.url);

/** The scripts of a page with hls.js. */
export const hlsScripts = (path = 'hls.js/dist/hls.min.js') => [
  { file: resolve(path) },
  { file: join(import.meta.dirname, 'record-hls.js') },
];

/** Runs in the page: an ordinary hls.js player. */
function play(stage: Stage): void {
  // biome-ignore lint/suspicious/noExplicitAny: the page's hls.js, untyped here
  const { Hls, recordHls } = window as any;
  const video = stage.root.querySelector('video')!;
  const hls = new Hls({
    maxBufferLength: stage.buffer,
    maxMaxBufferLength: stage.buffer,
    lowLatencyMode: stage.lowLatency,
    ...(stage.cmcd && {
      cmcd: {
        version: 2,
        includeKeys: ['br', 'd', 'ot', 'sid', 'cid', 'v', 'bl', 'sf'],
        useHeaders: stage.cmcd === 'headers',
      },
    }),
    ...(stage.clearKey && {
      emeEnabled: true,
      drmSystems: { 'org.w3.clearkey': { licenseUrl: new URL(stage.clearKey.license, location.href).href } },
    }),
  });
  recordHls(Hls, hls, stage);
  hls.loadSource(stage.manifest);
  hls.attachMedia(video);
  video.play().catch(() => {});
}

const row = (name: string, path: string, skips: Adapter['skips'] = {}) =>
  defineAdapter({ name, format: 'hls', parts: true, scripts: hlsScripts(path), play, skips });

const before17: Adapter['skips'] = {
  cmcd: 'hls.js before 1.7 speaks version 1 of CMCD alone',
  'cmcd-headers': 'hls.js before 1.7 speaks version 1 of CMCD alone',
  'clear-key': 'hls.js before 1.7 asks for no license of Clear Key here, without Leeway neither',
};

export const hlsjs17 = row('hls.js 1.7', 'hls.js/dist/hls.min.js');
export const hlsjs16 = row('hls.js 1.6', 'hls.js-1.6/dist/hls.min.js', before17);
export const hlsjs15 = row('hls.js 1.5', 'hls.js-1.5/dist/hls.min.js', before17);
