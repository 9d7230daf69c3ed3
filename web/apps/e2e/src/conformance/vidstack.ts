import { defineAdapter, type Stage } from '@leeway/conformance';
import { bundle } from './bundle.ts';
import { hlsScripts } from './hlsjs.ts';

/** Runs in the page: Vidstack's elements, which play HLS by the page's hls.js. */
function play(stage: Stage): void {
  // biome-ignore lint/suspicious/noExplicitAny: the page's hls.js and Vidstack, untyped here
  const { Hls, isHLSProvider, recordHls } = window as any;
  // biome-ignore lint/suspicious/noExplicitAny: an element of Vidstack
  const player = stage.root.querySelector('media-player') as any;
  // biome-ignore lint/suspicious/noExplicitAny: an event of Vidstack
  player.addEventListener('provider-change', ({ detail: provider }: any) => {
    if (!isHLSProvider(provider)) return;
    provider.library = Hls;
    provider.config = {
      maxBufferLength: stage.buffer,
      maxMaxBufferLength: stage.buffer,
      lowLatencyMode: stage.lowLatency,
      ...(stage.cmcd && { cmcd: { version: 2, useHeaders: stage.cmcd === 'headers' } }),
      ...(stage.clearKey && {
        emeEnabled: true,
        drmSystems: { 'org.w3.clearkey': { licenseUrl: new URL(stage.clearKey.license, location.href).href } },
      }),
    };
    provider.onInstance((hls: unknown) => recordHls(Hls, hls, stage));
  });
  player.src = { src: stage.manifest, type: 'application/vnd.apple.mpegurl' };
}

export const vidstack = defineAdapter({
  name: 'Vidstack 1.15',
  format: 'hls',
  scripts: [...hlsScripts(), { file: bundle('vidstack-page.js') }],
  markup:
    '<media-player muted autoplay playsinline load="eager" style="width: 320px"><media-provider></media-provider></media-player>',
  play,
});
