/** A browser without WebRTC, as its makers ship it: Debian's WebKitGTK. The page plays, and the library says why it does nothing. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { figures } from './figures.ts';
import { Stack } from './stack.ts';
import { until } from './viewer.ts';
import type { PageWindow } from './watched.ts';
import { WebKit, webkitMissing } from './webkit.ts';

const missing = webkitMissing();
if (missing) console.error(`e2e: skipped: WebKitGTK; ${missing}`);

let webkit: WebKit;
let stack: Stack;

beforeAll(async () => {
  if (missing) return;
  stack = await Stack.start();
  webkit = await WebKit.start();
});
afterAll(async () => {
  await webkit?.stop();
  await stack?.stop();
});

/** Runs in the page. */
async function look() {
  const { leeway, __told, __player, RTCPeerConnection } = window as unknown as PageWindow & typeof globalThis;
  const { errors, loaded } = await __player();
  return {
    webrtc: RTCPeerConnection !== undefined,
    decodes: MediaSource.isTypeSupported('video/mp4; codecs="avc1.4d401f,mp4a.40.2"'),
    state: leeway?.state as string | undefined,
    codes: __told.notices.map(({ code }) => code),
    at: document.querySelector('video')!.currentTime,
    loaded: loaded.length,
    fatal: errors.filter(({ fatal }) => fatal).map(({ details }) => details),
    agent: navigator.userAgent,
  };
}

test.skipIf(missing)('WebKitGTK without WebRTC: the page plays, and hears no-webrtc', async () => {
  await webkit.goto(stack.page({ level: 0, buffer: 12 }));
  let seen = await webkit.evaluate(look);
  expect(seen.webrtc, 'this WebKitGTK has WebRTC: the test needs another reason').toBe(false);
  expect(seen.decodes, 'no H.264 or AAC (apt-get install gstreamer1.0-libav gstreamer1.0-plugins-bad)').toBe(true);
  await until('six seconds of film', async () => {
    seen = await webkit.evaluate(look);
    return seen.at > 6 || seen.fatal.length > 0;
  });
  figures('webkit', seen);
  expect(seen).toMatchObject({ state: 'off', codes: ['no-webrtc'], fatal: [] });
  expect(seen.at).toBeGreaterThan(6);
});
