import { createRequire } from 'node:module';
import { type Adapter, defineAdapter, type Stage } from '@leeway/conformance';

/** Runs in the page: an ordinary player of dash.js. */
function play(stage: Stage): void {
  // biome-ignore lint/suspicious/noExplicitAny: the page's dash.js, untyped here
  const { dashjs } = window as any;
  const { clearKey } = stage;
  const player = dashjs.MediaPlayer().create();
  player.updateSettings({
    streaming: {
      buffer: { bufferTimeDefault: stage.buffer, bufferTimeAtTopQuality: stage.buffer },
      cmcd: {
        enabled: !!stage.cmcd,
        version: 2,
        cid: 'film',
        mode: stage.cmcd || 'query',
      },
    },
  });
  // biome-ignore lint/suspicious/noExplicitAny: dash.js's error
  player.on(dashjs.MediaPlayer.events.ERROR, ({ error }: any) => stage.error(String(error?.code ?? error), true));
  // biome-ignore lint/suspicious/noExplicitAny: dash.js's response
  player.addResponseInterceptor((response: any) => {
    const { type, url, range } = response.request.customData.request;
    if (type === 'MediaSegment' && response.data) {
      stage.received({ url, range: range ? `bytes=${range}` : undefined, data: response.data });
    }
    return Promise.resolve(response);
  });
  const start = () => player.initialize(stage.root.querySelector('video'), stage.manifest, true);
  if (!clearKey) {
    start();
    return;
  }
  // The page asks for the license: of a PSSH box in the MPD dash.js makes a request that browsers refuse (dash.js issue 2992).
  void fetch(clearKey.license)
    .then((answer) => answer.json())
    .then(({ keys }: { keys: { kid: string; k: string }[] }) => {
      const clearkeys = Object.fromEntries(keys.map(({ kid, k }) => [kid, k]));
      player.setProtectionData({ 'org.w3.clearkey': { clearkeys } });
      start();
    });
}

const resolve = createRequire(import.meta.url).resolve;
const file = resolve('dashjs').replace(/modern\/\w+\/[^/]+$/, 'modern/umd/dash.all.min.js');

const ofHls = 'a case of HLS';
const skips: Adapter['skips'] = {
  'aes-128': ofHls,
  'key-rotation': ofHls,
  discontinuities: ofHls,
  'low-latency': 'the kit has no MPD of low latency',
};

export const dashjs52 = defineAdapter({
  name: 'dash.js 5.2',
  format: 'dash',
  scripts: [{ file }],
  early: true,
  play,
  skips,
});
