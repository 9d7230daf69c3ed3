import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures, round } from './figures.ts';
import { Stack } from './stack.ts';
import { until, Viewer } from './viewer.ts';
import type { PageWindow } from './watched.ts';

let browser: Chromium;
let stack: Stack;

const path = '/media/film/image.bin';
const part = 4 << 20;
/** Four parts; a viewer's cache holds all of it. */
const file = randomBytes(3 * part + 1_000_000);

beforeAll(async () => {
  stack = await Stack.start({ files: [path] });
  stack.origin.replaced.set(path, file);
  browser = await Chromium.start();
});
afterAll(async () => {
  await browser?.stop();
  await stack?.stop();
});

interface Fetched {
  status: number;
  length: number;
  digest: string;
}

/** Fetches in the page, and says what came. */
const fetched = (viewer: Viewer, options: object): Promise<Fetched> =>
  viewer.page.evaluate(
    async (url, how) => {
      const response: Response = await (window as unknown as PageWindow).leeway.fetch(url, how);
      const data = await response.arrayBuffer();
      const digest = [...new Uint8Array(await crypto.subtle.digest('SHA-256', data))];
      return {
        status: response.status,
        length: data.byteLength,
        digest: digest.map((b) => b.toString(16).padStart(2, '0')).join(''),
      };
    },
    path,
    options,
  );

const digest = (data: Buffer) => createHash('sha256').update(data).digest('hex');
const whole = { status: 200, length: file.length, digest: digest(file) };
const open = async (name: string) => {
  const viewer = await Viewer.open(browser, stack.page({ player: 'none' }), { name });
  await until('a session', async () => (await viewer.stats())?.state === 'ready');
  return viewer;
};

test('a file comes from another viewer, the same to the byte; so does a range, and an abort ends it', async () => {
  const first = await open('first');
  expect(await fetched(first, {})).toEqual(whole);
  // The seed certifies what the first one has.
  await until('the first one holds it', async () => (await first.stats()).titles[0]?.engine?.cacheBytes >= file.length);

  const second = await open('second');
  expect(await fetched(second, { priority: 'low' })).toEqual(whole);
  const { segments } = await second.told();
  const sum = (of: 'origin' | 'seed' | 'peer') => segments.reduce((n, { bytes }) => n + bytes[of], 0);
  const share = sum('peer') / file.length;
  figures('files', { bytes: file.length, fromViewers: round(share), origin: sum('origin'), seed: sum('seed') });
  // Nearly all on a machine with time; where it has none, the seed sends what the other page is late with.
  expect(sum('peer')).toBeGreaterThan(part);

  const range = { first: part - 10, last: 2 * part + 20 };
  expect(await fetched(second, { range })).toEqual({
    status: 206,
    length: range.last - range.first + 1,
    digest: digest(file.subarray(range.first, range.last + 1)),
  });

  const third = await open('third');
  const aborted = await third.page.evaluate(async (url) => {
    const controller = new AbortController();
    const { leeway } = window as unknown as PageWindow;
    const response: Response = await leeway.fetch(url, { signal: controller.signal });
    const reader = response.body!.getReader();
    const { value } = await reader.read();
    controller.abort(new DOMException('enough', 'AbortError'));
    const error = await reader.read().then(
      () => 'read on',
      (e: Error) => e.name,
    );
    return { length: value!.length, error, titles: leeway.stats().titles.length };
  }, path);
  expect(aborted).toEqual({ length: part, error: 'AbortError', titles: 0 });
  for (const viewer of [first, second, third]) {
    expect((await viewer.told()).notices, viewer.name).toEqual([]);
    expect(viewer.consoleErrors(), viewer.name).toEqual([]);
  }
});
