import { createRequire } from 'node:module';
import { type Adapter, defineAdapter, type Stage } from '@leeway/conformance';

/** Runs in the page: an ordinary player of Video.js. */
function play(stage: Stage): void {
  // biome-ignore lint/suspicious/noExplicitAny: the page's Video.js, untyped here
  const { videojs } = window as any;
  const { Vhs } = videojs;
  Vhs.GOAL_BUFFER_LENGTH = Vhs.MAX_GOAL_BUFFER_LENGTH = stage.buffer;
  const player = videojs(stage.root.querySelector('video'), {
    html5: { vhs: { llhls: stage.lowLatency } },
  });
  player.on('xhr-hooks-ready', () => {
    // biome-ignore lint/suspicious/noExplicitAny: a request of VHS
    player.tech(true).vhs.xhr.onResponse((request: any, error: any) => {
      if (error || request.requestType !== 'segment' || !/^20[06]$/.test(request.status)) return;
      stage.received({ url: request.uri, range: ranges.get(request), data: request.response });
    });
  });
  // VHS tells a hook of a response nothing of the range that it asked for.
  const ranges = new WeakMap<object, string>();
  player.on('xhr-hooks-ready', () => {
    const { vhs } = player.tech(true);
    const { xhr } = vhs;
    // biome-ignore lint/suspicious/noExplicitAny: a request of VHS
    vhs.xhr = Object.assign((options: any, callback: any) => {
      const request = xhr(options, callback);
      if (options.headers?.Range) ranges.set(request, options.headers.Range);
      return request;
    }, xhr);
  });
  player.on('error', () => stage.error(String(player.error()?.code), true));
  // What VHS tries again by itself it says in the log.
  videojs.log.level('off');
  player.tech(true).on('retryplaylist', () => stage.error('retryplaylist', false));
  player.src({ src: stage.manifest, type: 'application/x-mpegurl' });
  player.play()?.catch(() => {});
}

const own = 'Video.js speaks no CMCD by itself';
const skips: Adapter['skips'] = {
  cmcd: own,
  'cmcd-headers': own,
  'clear-key': 'VHS has no EME by itself (videojs-contrib-eme), and reads no keys of SAMPLE-AES-CTR',
};

export const videojs8 = defineAdapter({
  name: 'Video.js 8',
  format: 'hls',
  parts: true,
  scripts: [{ file: createRequire(import.meta.url).resolve('video.js/dist/video.min.js') }],
  play,
  skips,
});
