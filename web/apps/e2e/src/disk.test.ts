import { expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures } from './figures.ts';
import { Firefox } from './firefox.ts';
import { Stack } from './stack.ts';
import { until, Viewer } from './viewer.ts';
import type { PageWindow } from './watched.ts';

/** Enough for the film in any rendition. */
const most = 1 << 30;

/** Of each test, since it looks at what its own pages asked the origin for. */
const start = () =>
  // The packager's lists certify: Firefox makes no pair with a seed that is on loopback alone.
  Stack.start({ split: true, seedless: true, packaged: true, policy: { disk_bytes: most } });

/** What is in the folder that pages of the origin keep segments in; undefined: there is no folder, or it is deleted while it is read. */
const kept = (viewer: Viewer) =>
  viewer.page.evaluate(async () => {
    const root = await navigator.storage.getDirectory();
    const files: string[] = [];
    try {
      const folder = await root.getDirectoryHandle('leeway');
      for await (const name of (folder as unknown as { keys(): AsyncIterable<string> }).keys()) files.push(name);
    } catch (error) {
      if ((error as DOMException).name !== 'NotFoundError') throw error;
      return undefined;
    }
    return files.filter((name) => name !== 'list').length;
  });

const counters = async (viewer: Viewer): Promise<Record<string, number>> =>
  (await viewer.stats())?.titles[0]?.engine?.counters ?? {};

/** Seconds that the player buffers at once. What it asks for before there is an engine is not kept. */
const buffer = 20;

test.concurrent.each([
  ['Chromium', Chromium],
  ['Firefox', Firefox],
] as const)('in %s a page that is loaded again plays what it kept, and what is deleted is gone', async (name, Browser) => {
  const stack = await start();
  const browser = await Browser.start();
  try {
    const viewer = await Viewer.open(browser, stack.page({ level: 0, buffer }), { name });
    await viewer.until('32 s of film', (s) => s.currentTime >= 32, 90_000);
    await until('six segments on the disk', async () => ((await kept(viewer)) ?? 0) >= 6);
    const first = await counters(viewer);

    const before = stack.origin.ledger.length;
    await viewer.page.reload({ waitUntil: 'domcontentloaded' });
    await viewer.until('3 s of film', (s) => s.currentTime >= 3, 60_000);
    const seen = await viewer.until('24 s of film', (s) => s.currentTime >= 24, 60_000);
    const asked = stack.origin.ledger.slice(before).filter((r) => r.asker === 'viewer' && /\.(ts|m4s)$/.test(r.path));
    const paths = new Set(asked.map((r) => r.path));
    const { segments } = await viewer.told();
    const fromDisk = segments.filter(({ url }) => !paths.has(new URL(url).pathname));
    const { bytes, disk_bytes: read } = (await viewer.stats()).titles[0].totals;
    const again = await counters(viewer);
    figures('disk', {
      browser: name,
      segments: segments.length,
      asked: paths.size,
      fromDisk: fromDisk.length,
      bytes,
      read,
      ...{ first, again, stalls: seen.stalls },
    });
    // What the player asked for after the engine was there, in 20 s of playing.
    expect(fromDisk.length).toBeGreaterThanOrEqual(4);
    expect(read).toBeGreaterThan(0);
    expect({ stalls: seen.stalls, errors: viewer.consoleErrors() }).toEqual({ stalls: [], errors: [] });

    await viewer.page.evaluate(() => (window as unknown as PageWindow).leeway.clear());
    expect(await kept(viewer)).toBeUndefined();
    await viewer.until('2 s more', (s) => s.currentTime >= seen.currentTime + 2);
    expect((await viewer.seen()).stalls).toEqual([]);
    expect(await kept(viewer)).toBeUndefined();
  } finally {
    await browser.stop();
    await stack.stop();
  }
});

test.concurrent('withdrawn consent deletes what was kept; the switch of a page keeps nothing', async () => {
  const stack = await start();
  const browser = await Chromium.start();
  try {
    const viewer = await Viewer.open(browser, stack.page({ level: 0, buffer: 8 }), { name: 'consent' });
    await until('something on the disk', async () => ((await kept(viewer)) ?? 0) > 0);
    await viewer.page.evaluate(() => (window as unknown as PageWindow).leeway.consent(false));
    await until('nothing on the disk', async () => (await kept(viewer)) === undefined);
    const other = await Viewer.open(browser, stack.page({ level: 0, buffer: 8, attributes: 'data-disk="off"' }), {
      name: 'off',
    });
    await other.until('8 s of film', (s) => s.currentTime >= 8, 40_000);
    expect(await kept(other)).toBeUndefined();
    expect([...viewer.consoleErrors(), ...other.consoleErrors()]).toEqual([]);
  } finally {
    await browser.stop();
    await stack.stop();
  }
});
