/** The demo page: its button stops the tracker and nothing stops, and its players share with each other. */
import { expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures } from './figures.ts';
import { Demo, dataDir, freePort, Service } from './service.ts';
import { until, Viewer } from './viewer.ts';
import type { PageWindow } from './watched.ts';

test('the page stops the tracker for two seconds, and the film plays on', async () => {
  const data = dataDir();
  const [listen, admin, seed, probe] = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
  const at = (port: number) => `127.0.0.1:${port}`;
  const addresses = [
    '--listen',
    at(listen),
    '--admin',
    at(admin),
    '--seed-listen',
    at(seed),
    '--probe-listen',
    at(probe),
  ];
  const up = await Service.start(['up', ...addresses, '--data-dir', data.path], `http://${at(admin)}/readyz`);
  let browser: Chromium | undefined;
  try {
    browser = await Chromium.start();
    const viewer = await Viewer.open(browser, `http://${at(listen)}/?level=0&outage=2`);
    await viewer.until('2 s of film', (seen) => seen.currentTime > 2);
    const session = () =>
      viewer.page.evaluate(() => {
        const { state, session } = (window as unknown as PageWindow).leeway.stats();
        return { state, reconnects: session?.reconnects ?? 0 };
      });
    const said = () => viewer.page.$eval('#sentence', (element) => element.textContent ?? '');
    await until('a session', async () => (await session()).state === 'ready');
    const button = await viewer.page.waitForSelector('#outages:not([hidden]) [data-service="tracker"]:enabled');
    const { reconnects } = await session();
    const gone = (await viewer.seen()).currentTime;
    await button!.click();
    await until('the page says so', async () => /^The tracker is (gone|back)/.test(await said()));
    await until('another session', async () => {
      const { state, reconnects: now } = await session();
      return state === 'ready' && now > reconnects;
    });
    const seen = await viewer.until('the film plays on', (now) => now.currentTime > gone + 2);
    figures('demo', { gone, back: seen.currentTime, said: await said() });
    expect(seen.stalls).toEqual([]);
  } finally {
    await browser?.stop();
    await up.stop();
    data.remove();
  }
});

test('viewers with Shaka, Video.js and dash.js share the film with one with hls.js', async () => {
  const demo = await Demo.start();
  let browser: Chromium | undefined;
  try {
    browser = await Chromium.start();
    const open = (player: string) =>
      Viewer.open(browser!, `${demo.url}/?level=0&maxbuffer=16&player=${player}`, { name: player });
    const peer = async (viewer: Viewer): Promise<number> => (await viewer.stats())?.titles[0]?.totals.bytes.peer ?? 0;
    const first = await open('hlsjs');
    await first.until('12 s ahead', (seen) => seen.bufferedAhead > 12);
    // The MPD of dash.js lists the segments of the playlists.
    const guests = await Promise.all(['shaka', 'videojs', 'dashjs'].map(open));
    await Promise.all(guests.map((v) => until(`bytes from viewers for ${v.name}`, async () => (await peer(v)) > 5e5)));
    for (const viewer of [first, ...guests]) {
      await viewer.until('the film plays', (seen) => seen.currentTime > 1);
      const shown = await viewer.page.evaluate(() => ({
        player: (document.querySelector('#player') as HTMLSelectElement).value,
        colored: document.querySelectorAll('.cell[data-source]').length,
        refused: document.querySelector('#refused')!.textContent,
        loaded: performance
          .getEntriesByType('resource')
          .flatMap(({ name }) => /assets\/(hlsjs|shaka|dashjs|videojs)-[^/]*\.js$/.exec(name)?.[1] ?? []),
      }));
      figures('demo', { viewer: viewer.name, peer: await peer(viewer), ...shown });
      // Of the players the chosen one alone is loaded.
      expect(shown).toMatchObject({ player: viewer.name, refused: '', loaded: [viewer.name] });
      expect(shown.colored).toBeGreaterThan(1);
      expect(viewer.consoleErrors()).toEqual([]);
    }
  } finally {
    await browser?.stop();
    await demo.stop();
  }
});
