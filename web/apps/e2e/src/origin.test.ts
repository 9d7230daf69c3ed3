import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures } from './figures.ts';
import type { Fault } from './origin.ts';
import { Stack } from './stack.ts';
import { pause, Viewer } from './viewer.ts';

let browser: Chromium;
let stack: Stack;

beforeAll(async () => {
  stack = await Stack.start();
  browser = await Chromium.start();
});
afterAll(async () => {
  await browser?.stop();
  await stack?.stop();
});

/** What hls.js says about a segment that does not come, the same with Leeway and without. */
const faults: { name: string; path: string; fault: Omit<Fault, 'match'>; expected: string[] }[] = [
  {
    name: '404',
    path: '480p/seg-00002',
    fault: { status: 404, times: 2 },
    expected: ['fragLoadError 404', 'fragLoadError 404'],
  },
  {
    name: '500',
    path: '480p/seg-00004',
    fault: { status: 500, times: 2 },
    expected: ['fragLoadError 500', 'fragLoadError 500'],
  },
  { name: 'slow', path: '480p/seg-00006', fault: { rate: 150_000, times: 1 }, expected: [] },
  { name: 'silent', path: '480p/seg-00008', fault: { delayMs: 6000, times: 1 }, expected: ['fragLoadTimeOut 0'] },
];

test.concurrent('an origin that answers 404, 500, slowly or not: plain HTTP behavior', async () => {
  for (const { path, fault } of faults) {
    for (const asker of ['viewer', 'shaped'] as const) {
      stack.origin.faults.push({ match: new RegExp(path), askers: [asker], ...fault });
    }
    // The seed cannot help: for it the segment is broken for good.
    stack.origin.faults.push({ match: new RegExp(path), askers: ['seed'], status: 500 });
  }
  // One rendition alone, so that the player tries again instead of choosing another.
  const options = { manifest: '/media/film/480p/index.m3u8', buffer: 12, firstByteMs: 3000 };
  const plain = await Viewer.open(browser, stack.plain(options, 'shaped'), { name: 'plain' });
  const leeway = await Viewer.open(browser, stack.page(options), { name: 'with Leeway' });
  await Promise.all([plain, leeway].map((v) => v.until('40 s of film', (seen) => seen.currentTime > 40, 60_000)));
  const result = await Promise.all(
    [plain, leeway].map(async (v) => ({
      name: v.name,
      stalls: (await v.seen()).stalls,
      errors: (await v.player()).errors
        .filter((e) => e.details.startsWith('frag'))
        .map((e) => `${e.details} ${e.code}`),
      fatal: (await v.player()).errors.filter((e) => e.fatal).length,
    })),
  );
  figures('origin faults', { viewers: result });
  stack.origin.faults.length = 0;
  const expected = faults.flatMap((f) => f.expected);
  for (const r of result) expect(r, r.name).toMatchObject({ errors: expected, fatal: 0, stalls: [] });
  await Promise.all([plain.close(), leeway.close()]);
});

test.concurrent('a re-encoded file under the same URL: no mixed content, and a purge heals it', async () => {
  const first = await Viewer.open(browser, stack.page({ level: 1, buffer: 40 }), { name: 'first' });
  await first.until('buffer', (seen) => seen.bufferedAhead > 30, 30_000);
  const old = new Map<string, string>();
  for (let i = 0; i < 75; i++) {
    const path = `/media/film/360p/seg-${String(i).padStart(5, '0')}.ts`;
    const body = await stack.origin.body(path).catch(() => undefined);
    if (!body) break;
    old.set(path, sha256(body));
    // A stuffing packet in front moves every byte and changes every piece, and plays like the old file.
    stack.origin.replaced.set(path, Buffer.concat([stuffing, body]));
  }
  const second = await Viewer.open(browser, stack.page({ level: 1, buffer: 20 }), { name: 'second' });
  await second.until('10 s of film', (seen) => seen.currentTime > 10, 30_000);
  const before = await sort(second, old);

  await stack.operate('purge', 'e2e', '/media/film/360p/');
  await pause(2000);
  const third = await Viewer.open(browser, stack.page({ level: 1, buffer: 20 }), { name: 'third' });
  const fourth = await Viewer.open(browser, stack.page({ level: 1, buffer: 20 }), { name: 'fourth' });
  await Promise.all([third, fourth].map((v) => v.until('12 s of film', (seen) => seen.currentTime > 12, 30_000)));
  const after = [await sort(third, old), await sort(fourth, old)];
  const stalls = (await Promise.all([first, second, third, fourth].map((v) => v.seen()))).flatMap((s) => s.stalls);
  figures('re-encoded', { before, after, stalls: stalls.length });

  expect(before.old + before.fresh, 'segments compared').toBeGreaterThan(2);
  expect(before.mixed).toBe(0);
  for (const viewer of after) {
    expect(viewer.fresh, 'segments compared').toBeGreaterThan(3);
    expect(viewer).toMatchObject({ mixed: 0, old: 0 });
  }
  expect(stalls).toEqual([]);
  await Promise.all([first, second, third, fourth].map((v) => v.close()));
});

/** How many of the segments that a viewer's player got were the old file, the new one, or neither. */
async function sort(viewer: Viewer, old: Map<string, string>): Promise<{ old: number; fresh: number; mixed: number }> {
  const count = { old: 0, fresh: 0, mixed: 0 };
  for (const { url, digest } of (await viewer.player()).loaded) {
    const path = new URL(url).pathname;
    const fresh = stack.origin.replaced.get(path);
    if (digest === old.get(path)) count.old++;
    else if (fresh && digest === sha256(fresh)) count.fresh++;
    else count.mixed++;
  }
  return count;
}

function sha256(data: Buffer): string {
  return createHash('sha256').update(data).digest('hex');
}

/** A transport stream packet that says nothing (PID 0x1fff). */
const stuffing = Buffer.concat([Buffer.from([0x47, 0x1f, 0xff, 0x10]), Buffer.alloc(184, 0xff)]);
