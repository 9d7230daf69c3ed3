import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { headlessViewer } from './headless.ts';
import { Demo } from './service.ts';
import { pause, Viewer } from './viewer.ts';

let browser: Chromium;
let demo: Demo;

beforeAll(async () => {
  demo = await Demo.start();
  browser = await Chromium.start();
});
afterAll(async () => {
  await browser?.stop();
  await demo?.stop();
});

const dash = ['DASH', 'master.mpd', '&player=dashjs'] as const;
/** `make e2e-players`: both; with each change the other one is played by `interop.test.ts`. */
const formats = process.env.LEEWAY_E2E_PLAYERS === 'all' ? [dash, ['HLS', 'master.m3u8', ''] as const] : [dash];

test.each(
  formats,
)('a headless viewer of %s serves Chromium, and Chromium serves a headless viewer', async (_, name, player) => {
  const manifest = `${demo.url}/media/bbb/${name}`;
  const first = headlessViewer(manifest, demo.url, '45s');
  await pause(8_000);
  const viewer = await Viewer.open(browser, `${demo.url}/?level=2&maxbuffer=20${player}`, { name: 'Chromium' });
  await viewer.until('30 s of film', (seen) => seen.currentTime >= 30, 90_000);
  const gone = await first;
  // Only the browser is left when the last one comes.
  const last = await headlessViewer(manifest, demo.url, '25s');
  const [title] = (await viewer.stats()).titles;
  const { bytes, uploaded, rejected_bytes } = title.totals;
  console.log(JSON.stringify({ first: gone.stats, chromium: title.totals, last: last.stats }));
  expect(bytes.peer).toBeGreaterThan(2_000_000);
  expect(gone.stats.uploaded?.direct).toBeGreaterThanOrEqual(bytes.peer);
  expect(last.stats.bytes.peer).toBeGreaterThan(2_000_000);
  expect(uploaded.direct).toBeGreaterThanOrEqual(last.stats.bytes.peer!);
  for (const s of [gone, last]) {
    expect(s).toMatchObject({ ended: 'left', banned: 0 });
    expect(s.stats.rejected_bytes ?? 0).toBe(0);
  }
  expect(rejected_bytes).toBe(0);
  expect(viewer.consoleErrors()).toEqual([]);
  await viewer.close();
});
