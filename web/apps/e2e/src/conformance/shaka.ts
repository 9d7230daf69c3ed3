import { createRequire } from 'node:module';
import { defineAdapter, type Stage } from '@leeway/conformance';

/** Runs in the page: an ordinary Shaka player. */
function play(stage: Stage): Promise<unknown> {
  // biome-ignore lint/suspicious/noExplicitAny: the page's Shaka, untyped here
  const { shaka } = window as any;
  const { clearKey } = stage;
  const video = stage.root.querySelector('video')!;
  shaka.polyfill.installAll();
  const player = new shaka.Player();
  const { Severity, Category } = shaka.util.Error;
  // biome-ignore lint/suspicious/noExplicitAny: Shaka's error
  player.addEventListener('error', ({ detail: { code, severity, category } }: any) =>
    // Below, the page tries again what the network failed in.
    stage.error(String(code), severity === Severity.CRITICAL && category !== Category.NETWORK),
  );
  player.configure({
    streaming: {
      bufferingGoal: stage.buffer,
      rebufferingGoal: 1,
      lowLatencyMode: stage.lowLatency,
      // biome-ignore lint/suspicious/noExplicitAny: Shaka's error
      failureCallback: (error: any) => {
        stage.error(`streaming ${error.code}`, false);
        player.retryStreaming();
      },
    },
    ...(stage.cmcd && { cmcd: { enabled: true, version: 2, contentId: 'film', useHeaders: stage.cmcd === 'headers' } }),
    ...(clearKey && {
      drm: { servers: { 'org.w3.clearkey': new URL(clearKey.license, location.href).href } },
    }),
  });
  const { SEGMENT } = shaka.net.NetworkingEngine.RequestType;
  // biome-ignore lint/suspicious/noExplicitAny: Shaka's response
  player.getNetworkingEngine().registerResponseFilter((type: number, response: any) => {
    const { Range: range } = response.originalRequest.headers;
    if (type === SEGMENT) stage.received({ url: response.uri, range, data: response.data });
  });
  video.autoplay = true;
  return player.attach(video).then(() => player.load(stage.manifest));
}

const script = { file: createRequire(import.meta.url).resolve('shaka-player') };

/** It is Shaka's own: what Leeway hands over is what the origin has, and is appended after it. */
const dropsParts =
  'Shaka 5.2.12 calls abort() before each part, so that browsers drop those without a keyframe' +
  ' (shaka-project/shaka-player#10559): Firefox waits for three seconds without a gap, and Chromium jumps over gaps';

export const shakaHls = defineAdapter({
  name: 'Shaka 5.2',
  format: 'hls',
  scripts: [script],
  play,
  skips: { 'low-latency': dropsParts },
});

const ofHls = 'a case of HLS';

export const shakaDash = defineAdapter({
  name: 'Shaka 5.2 DASH',
  format: 'dash',
  scripts: [script],
  play,
  skips: { 'aes-128': ofHls, 'key-rotation': ofHls, discontinuities: ofHls },
});
