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
    const { request } = response.request.customData;
    const { type, url, range } = request;
    if (type === 'MediaSegment' && response.data) {
      // Of low latency it is what has not been given yet.
      const parts = [...(given.get(request) ?? []), new Uint8Array(response.data)];
      const data = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
      let at = 0;
      for (const part of parts) {
        data.set(part, at);
        at += part.length;
      }
      stage.received({ url, range: range ? `bytes=${range}` : undefined, data });
    }
    return Promise.resolve(response);
  });
  const given = new WeakMap<object, Uint8Array[]>();
  // biome-ignore lint/suspicious/noExplicitAny: dash.js's event
  player.on('fragmentLoadingProgress', ({ request, response }: any) => {
    if (!response) return;
    const copy = new Uint8Array(response.slice(0));
    given.set(request, [...(given.get(request) ?? []), copy]);
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
};

export const dashjs52 = defineAdapter({
  name: 'dash.js 5.2',
  format: 'dash',
  scripts: [{ file }],
  early: true,
  play,
  skips,
});
