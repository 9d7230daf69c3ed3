import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { headlessViewer } from './headless.ts';
import { Interop, type InteropReport, interopPython } from './interop.ts';
import { Stack } from './stack.ts';
import { Viewer } from './viewer.ts';

let browser: Chromium;
let stack: Stack;

beforeAll(async () => {
  if (!interopPython) throw new Error('interop: start the suite with ./run, it makes the environment');
  stack = await Stack.start();
  browser = await Chromium.start();
});
afterAll(async () => {
  await browser?.stop();
  await stack?.stop();
});

/** It has all that it wanted, each byte is the origin's, and nothing was amiss. */
async function whole(report: InteropReport, wanted: number): Promise<void> {
  expect(report.problems).toEqual([]);
  expect(Object.keys(report.segments)).toHaveLength(wanted);
  for (const [name, digest] of Object.entries(report.segments)) {
    const body = await stack.origin.body(name);
    expect(digest, name).toBe(createHash('sha256').update(body).digest('hex'));
  }
}

function bytes(counted: Record<string, number>, role: string): number {
  return Object.entries(counted).reduce((sum, [key, n]) => sum + (key.startsWith(role) ? n : 0), 0);
}

test('it takes from a seed, and a headless viewer and Chromium take from it', async () => {
  const python = new Interop(stack, { from: 'seed', segments: 12, serve: 120 });
  await whole(await python.taken(), 12);
  const headless = headlessViewer(stack.origin.url('/media/film/master.m3u8'), stack.tracker, '15s');
  const viewer = await Viewer.open(browser, stack.page({ level: 2, buffer: 16 }), { name: 'Chromium' });
  await viewer.until('15 s of film', (seen) => seen.currentTime >= 15, 90_000);
  const watched = await headless;
  const [title] = (await viewer.stats()).titles;
  const report = await python.stop();
  expect(report.problems).toEqual([]);
  expect(bytes(report.served, 'viewer')).toBeGreaterThan(1_000_000);
  expect(watched).toMatchObject({ ended: 'left', banned: 0 });
  expect(watched.stats.bytes.peer).toBeGreaterThan(0);
  expect(watched.stats.rejected_bytes ?? 0).toBe(0);
  expect(title.totals.bytes.peer).toBeGreaterThan(0);
  expect(title.totals.rejected_bytes).toBe(0);
  expect(viewer.consoleErrors()).toEqual([]);
  await viewer.close();
});

test('it takes from a headless viewer', async () => {
  const headless = headlessViewer(stack.origin.url('/media/film/master.m3u8'), stack.tracker, '25s');
  const python = new Interop(stack, { from: 'viewer', segments: 4 });
  await whole(await python.taken(), 4);
  const watched = await headless;
  expect(watched.banned).toBe(0);
  expect(watched.stats.uploaded?.direct ?? 0).toBeGreaterThan(1_000_000);
});

test('it takes from Chromium', async () => {
  const viewer = await Viewer.open(browser, stack.page({ level: 2, buffer: 16 }), { name: 'Chromium' });
  await viewer.until('5 s of film', (seen) => seen.currentTime >= 5, 90_000);
  const python = new Interop(stack, { from: 'viewer', segments: 3 });
  await whole(await python.taken(), 3);
  const [title] = (await viewer.stats()).titles;
  expect(title.totals.uploaded.direct).toBeGreaterThan(1_000_000);
  expect(viewer.consoleErrors()).toEqual([]);
  await viewer.close();
});
