/** A page that starts and stops the library many times has nothing left of it, and no hook: it is the page that it was. */
import type { CDPSession } from 'puppeteer-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures } from './figures.ts';
import { Stack } from './stack.ts';
import { pause, until, Viewer } from './viewer.ts';
import type { PageWindow } from './watched.ts';

let browser: Chromium;
let stack: Stack;

beforeAll(async () => {
  stack = await Stack.start();
  // A player and nothing else: the other test page keeps what its loaders have brought.
  stack.origin.pages.set('/one.html', () => {
    return `<!doctype html><title>leaks</title><video muted></video><script src="/hls.js"></script><script>(${play})()</script>`;
  });
  browser = await Chromium.start();
});
afterAll(async () => {
  await browser?.stop();
  await stack?.stop();
});

/** Runs in the page. */
function play(): void {
  const { Hls } = window as unknown as PageWindow;
  const hls = new Hls({ startLevel: 0, maxBufferLength: 12, maxMaxBufferLength: 12, capLevelToPlayerSize: false });
  const video = document.querySelector('video')!;
  hls.on('hlsManifestParsed', () => (hls.loadLevel = 0));
  hls.loadSource('/media/film/master.m3u8');
  hls.attachMedia(video);
  video.play().catch(() => {});
  Object.assign(window, { __hls: hls });
}

/** Runs in the page: puts the tag into it. */
function addTag(src: string): void {
  const tag = document.createElement('script');
  tag.id = 'tag';
  Object.assign(tag, { src }).dataset.tracker = src.replace(/^http/, 'ws').replace('/leeway.js', '');
  document.body.append(tag);
}

/** Runs in the page. */
function isLinked(): boolean {
  const { leeway } = window as unknown as PageWindow;
  // biome-ignore lint/suspicious/noExplicitAny: the library's figures
  return leeway?.stats().titles.some(({ links }: any) => links.open > 0) ?? false;
}

/** Runs in the page: stops the library and takes the tag out. */
function removeTag(): void {
  const page = window as unknown as PageWindow;
  page.leeway.stop();
  Reflect.deleteProperty(page, 'leeway');
  document.getElementById('tag')!.remove();
}

/** What the browser has of these, and of functions and listeners, once all garbage is gone. */
const classes = [
  'RTCPeerConnection',
  'RTCDataChannel',
  'WebSocket',
  'Worker',
  'MessagePort',
  'BroadcastChannel',
  'AbortController',
  'HTMLScriptElement',
  'Map',
  'Set',
  'Function',
] as const;
type Counts = Record<(typeof classes)[number] | 'listeners' | 'nodes' | 'bytes', number>;

async function count(cdp: CDPSession): Promise<Counts> {
  const counts = {} as Counts;
  for (const name of classes) {
    const { result } = await cdp.send('Runtime.evaluate', { expression: `${name}.prototype` });
    // Collects all garbage first.
    const { objects } = await cdp.send('Runtime.queryObjects', { prototypeObjectId: result.objectId! });
    const functionDeclaration = 'function () { return this.length }';
    const length = await cdp.send('Runtime.callFunctionOn', { objectId: objects.objectId!, functionDeclaration });
    counts[name] = length.result.value;
    for (const objectId of [objects.objectId!, result.objectId!]) await cdp.send('Runtime.releaseObject', { objectId });
  }
  const { jsEventListeners: listeners, nodes } = await cdp.send('Memory.getDOMCounters');
  const { usedSize: bytes } = await cdp.send('Runtime.getHeapUsage');
  return Object.assign(counts, { listeners, nodes, bytes });
}

/** Looks at what there is, once a second at most: what was let go has a last message to send, and time-outs that still know of it. */
const looks = 6;

/** The least of several looks, or the first one with so few functions. */
async function settled(cdp: CDPSession, enough = 0): Promise<Counts> {
  let least = await count(cdp);
  for (let look = 1; look < looks && least.Function > enough; look++) {
    await pause(1000);
    const counts = await count(cdp);
    if (counts.Function < least.Function) least = counts;
  }
  return least;
}

/** Runs in the page: what a library could have put its hand on, each by what it is. */
function hooks(): Record<string, string> {
  const { Hls, __hls } = window as unknown as PageWindow;
  const page = window as unknown as { __known?: Map<unknown, number> };
  page.__known ??= new Map();
  const known = page.__known;
  const nameOf = (value: unknown) => {
    if (typeof value !== 'function' && typeof value !== 'object') return String(value);
    if (!known.has(value)) known.set(value, known.size);
    return `#${known.get(value)}`;
  };
  const all: Record<string, string> = {};
  const of = (name: string, object: object) => {
    for (const key of Reflect.ownKeys(object)) {
      const d = Object.getOwnPropertyDescriptor(object, key)!;
      if (typeof key === 'string' && /^(__|\d)/.test(key)) continue;
      const how = [d.configurable, d.enumerable, d.writable].map(Number).join('');
      // What an object holds may change as the page plays; whose functions they are may not.
      const value = typeof d.value === 'function' || d.get ? nameOf(d.value ?? d.get) : '';
      all[`${name}.${String(key)}`] = `${how} ${value}`;
    }
  };
  for (const key of Object.getOwnPropertyNames(window)) {
    const d = Object.getOwnPropertyDescriptor(window, key)!;
    if (!key.startsWith('__')) all[key] = nameOf(d.value ?? d.get);
    if (typeof d.value === 'function' && d.value.prototype) of(`${key}.prototype`, d.value.prototype);
  }
  of('Hls', Hls);
  of('config', __hls.config);
  of('navigator', navigator);
  all.head = String(document.head.children.length);
  all.body = String(document.body.children.length);
  return all;
}

test('ten starts and stops on one page leave nothing, and the page has all that it had', async () => {
  const other = await Viewer.open(browser, stack.page({ level: 0, buffer: 12 }), { name: 'other viewer' });
  const viewer = await Viewer.open(browser, stack.origin.url('/one.html'), { name: 'starts and stops' });
  const { page } = viewer;
  const cdp = await page.createCDPSession();
  await viewer.until('a picture', ({ startup }) => startup >= 0);
  const before = await page.evaluate(hooks);
  const workers = page.workers().length;
  const cycle = async () => {
    await page.evaluate(addTag, `${stack.tracker}/leeway.js`);
    await until('a link', () => page.evaluate(isLinked), 15_000);
    await page.evaluate(removeTag);
  };
  // The first ones also leave what the browser and the player make once.
  for (let n = 0; n < 2; n++) await cycle();
  const first = await settled(cdp);
  for (let n = 0; n < 10; n++) await cycle();
  const last = await settled(cdp, first.Function + 10);
  const seen = await viewer.seen();
  figures('leaks', { first, last, stalls: seen.stalls });
  // One of anything that a start leaves would be ten.
  for (const name of [...classes, 'listeners', 'nodes'] as const)
    expect(last[name] - first[name], `${name}, of ten starts`).toBeLessThan(name === 'Function' ? 40 : 5);
  expect(last.bytes - first.bytes, 'bytes, of ten starts').toBeLessThan(1_000_000);
  expect(await page.evaluate(hooks)).toEqual(before);
  // The player has one itself.
  expect(page.workers()).toHaveLength(workers);
  expect(seen.stalls).toEqual([]);
  expect(viewer.consoleErrors()).toEqual([]);
  await Promise.all([other.close(), viewer.close()]);
});
