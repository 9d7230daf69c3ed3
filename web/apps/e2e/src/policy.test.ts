/** What a page's own policies let Leeway do: the lines of docs/embedding.md suffice, and where one is missing the library says which. */
import { createHash } from 'node:crypto';
import type { Frame } from 'puppeteer-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures } from './figures.ts';
import type { Front } from './front.ts';
import { Stack } from './stack.ts';
import { pause, Viewer } from './viewer.ts';
import type { PageOptions, PageWindow } from './watched.ts';

let browser: Chromium;
let stack: Stack;
let front: Front;
let base: string;
let integrity: string;

beforeAll(async () => {
  stack = await Stack.start();
  ({ base, front } = await stack.publish());
  const script = Buffer.from(await (await fetch(`${stack.tracker}/leeway.js`)).arrayBuffer());
  integrity = `sha256-${createHash('sha256').update(script).digest('base64')}`;
  browser = await Chromium.start(['--ignore-certificate-errors']);
});
afterAll(async () => {
  await browser?.stop();
  await front?.stop();
  await stack?.stop();
});

const socket = () => stack.tracker.replace('http', 'ws');

/** The documented policy, with the lines given in place of its own. */
function policy(lines: Record<string, string> = {}): string {
  const all = {
    'default-src': "'self'",
    // The page's own script is inline.
    'script-src': `'self' 'unsafe-inline' ${stack.tracker}`,
    'connect-src': `'self' ${socket()}`,
    'worker-src': 'blob:',
    'media-src': 'blob:',
    ...lines,
  };
  return Object.entries(all)
    .map(([name, value]) => `${name} ${value}`)
    .join('; ');
}

/** What a page saw and said. */
interface Visit {
  codes: string[];
  messages: string[];
  state: string;
  others: number;
  played: number;
  fatal: number;
  isolated: boolean;
}

/** Runs in the page. */
async function look(): Promise<Visit> {
  const { leeway, __told, __player } = window as unknown as PageWindow;
  const { errors } = await __player();
  return {
    codes: __told.notices.map(({ code }) => code),
    messages: __told.notices.map(({ message }) => message),
    state: leeway.state,
    others: __told.segments.reduce((sum, { bytes }) => sum + bytes.seed + bytes.peer, 0),
    played: document.querySelector('video')!.currentTime,
    fatal: errors.filter(({ fatal }) => fatal).length,
    isolated: window.crossOriginIsolated,
  };
}

/** Watches until the film plays and `enough` holds, or for half a minute. */
async function watch(page: Pick<Frame, 'evaluate'>, enough: (visit: Visit) => boolean): Promise<Visit> {
  const deadline = Date.now() + 30_000;
  for (;;) {
    // The script may not be there yet.
    const visit = await page.evaluate(look).catch(() => undefined);
    if (visit && ((visit.played > 4 && enough(visit)) || Date.now() > deadline)) return visit;
    if (Date.now() > deadline) throw new Error('e2e: nothing to be seen of the library');
    await pause(250);
  }
}

const shares = ({ others }: Visit) => others > 0;
const says = ({ codes }: Visit) => codes.length > 0;

async function visit(name: string, enough: (visit: Visit) => boolean, options: PageOptions, host = '') {
  const all = { tracker: stack.tracker, level: 0, buffer: 12, ...options };
  const url = host ? host + stack.path(all) : stack.page(all);
  const viewer = await Viewer.open(browser, url, { name });
  const result = await watch(viewer.page, enough);
  const errors = viewer.consoleErrors();
  const { stalls } = await viewer.seen();
  await viewer.close();
  return { name, ...result, errors, stalls };
}

test('the documented lines suffice', async () => {
  const media = stack.origin.url('/media/film/master.m3u8', 'line1');
  const pinned = { attributes: `integrity="${integrity}"` };
  const results = await Promise.all([
    // Its media are another host's, which lets every page read them and exposes no header.
    visit('by host', shares, {
      policy: policy({ 'connect-src': `${socket()} ${new URL(media).origin}` }),
      manifest: media,
    }),
    visit('by nonce, pinned by a hash', shares, {
      ...pinned,
      policy: policy({ 'script-src': "'nonce-e2e' 'strict-dynamic'" }),
    }),
    visit('isolated', shares, {
      headers: { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' },
    }),
  ]);
  figures('policies that suffice', { visits: results });
  for (const { name, ...result } of results) {
    expect(result, name).toMatchObject({ codes: [], state: 'ready', errors: [], fatal: 0, stalls: [] });
    expect(result.others, name).toBeGreaterThan(0);
  }
  expect(results.map(({ isolated }) => isolated)).toEqual([false, false, true]);
});

test("in a frame of another site's page", async () => {
  const page = await browser.window();
  const src = stack.page({ level: 0, buffer: 12 });
  const around = stack.origin.url(`/frame.html?src=${encodeURIComponent(src)}`, 'viewer', 'localhost');
  await page.goto(around, { waitUntil: 'domcontentloaded' });
  const frame = await page.waitForFrame((f) => f.url() === src);
  const result = await watch(frame, shares);
  figures('in a frame', { ...result });
  expect(result).toMatchObject({ codes: [], state: 'ready', fatal: 0 });
  expect(result.others).toBeGreaterThan(0);
  await page.close();
});

test('what a policy lacks is said in one notice, and the page plays', async () => {
  const insecure = base.replace('https', 'http');
  const cases = [
    {
      name: 'no connect-src',
      code: 'tracker-blocked',
      state: 'off',
      options: { policy: policy({ 'connect-src': "'self'" }) },
    },
    {
      name: 'no worker-src',
      code: 'worker-blocked',
      state: 'ready',
      options: { policy: policy({ 'worker-src': "'none'" }) },
    },
    // The script comes by https, or the browser would not have it at all.
    {
      name: 'ws: on https',
      code: 'tracker-blocked',
      state: 'off',
      options: { tracker: insecure, script: `${base}/leeway.js` },
      host: base,
    },
  ];
  const results = await Promise.all(
    cases.map(async ({ name, code, state, options, host }) => ({
      expected: { codes: [code], state },
      ...(await visit(name, (seen) => says(seen) && (state === 'off' || shares(seen)), options, host)),
    })),
  );
  figures('policies that lack something', { visits: results });
  for (const { name, expected, others, ...result } of results) {
    expect(result, name).toMatchObject({ ...expected, fatal: 0, stalls: [] });
    // Without a worker links are there and carry.
    expect(others > 0, name).toBe(expected.state === 'ready');
  }
});
