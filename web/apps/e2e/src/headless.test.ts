import { spawn } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { binary } from './paths.ts';
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

/** What `leeway viewer` prints at the end; the fields that are looked at here. */
interface Summary {
  ended: string;
  offload: number;
  links_opened: number;
  banned: number;
  stats: { bytes: Record<string, number>; uploaded?: Record<string, number>; rejected_bytes?: number; stalls?: number };
}

/** A headless viewer that watches for so long. */
function headless(leave: string): { summary: Promise<Summary> } {
  const manifest = `${demo.url}/media/bbb/master.m3u8`;
  const child = spawn(binary, ['viewer', '--rendition', 'highest', '--buffer', '20s', '--leave', leave, manifest], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  return { summary: new Promise((resolve) => child.once('exit', () => resolve(JSON.parse(text) as Summary))) };
}

test('a headless viewer serves Chromium, and Chromium serves a headless viewer', async () => {
  const first = headless('45s');
  await pause(8_000);
  const viewer = await Viewer.open(browser, `${demo.url}/?level=2&maxbuffer=20`, { name: 'Chromium' });
  await viewer.until('30 s of film', (seen) => seen.currentTime >= 30, 90_000);
  const gone = await first.summary;
  // Only the browser is left when the last one comes.
  const last = await headless('25s').summary;
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
});
