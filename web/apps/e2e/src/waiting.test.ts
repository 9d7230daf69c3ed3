import { readFileSync } from 'node:fs';
import { createServer as createWebServer } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures } from './figures.ts';
import { lines } from './origin.ts';
import { freePort } from './service.ts';
import { reshape, shape, unshape } from './shape.ts';
import { Stack } from './stack.ts';
import { pause, until, Viewer } from './viewer.ts';

let browser: Chromium;
let stack: Stack;
const ends: (() => void)[] = [];

beforeAll(async () => {
  stack = await Stack.start();
  browser = await Chromium.start();
});
afterAll(async () => {
  unshape();
  for (const end of ends) end();
  await browser?.stop();
  await stack?.stop();
});

/** A tracker that takes connections and never says anything. */
async function silent(): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ends.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** One that takes no client. */
async function forbidding(): Promise<number> {
  const server = createWebServer((_, response) => response.writeHead(403).end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ends.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

const fast = 20_000_000;
const slow = 200_000;

test('a tracker that is dead when the page loads costs nothing', async () => {
  const trackers = [await freePort(), await silent(), await forbidding()];
  const kinds = ['refuses', 'silent', '403', 'without'];
  const rate = (bps: number) => lines.map((line) => ({ port: stack.origin.port(line), rate: bps }));
  shape(rate(fast));
  const script = `${stack.tracker}/leeway.js`;
  const options = { level: 2, buffer: 60 };
  const viewers = await Promise.all(
    kinds.map((name, i) => {
      const page = trackers[i]
        ? stack.page({ ...options, script, tracker: `http://127.0.0.1:${trackers[i]}` }, lines[i]!)
        : stack.plain(options, lines[i]!);
      return Viewer.open(browser, page, { name });
    }),
  );
  /** When each had ten seconds in hand, ms since it was opened. */
  const tenSeconds: (number | undefined)[] = viewers.map(() => undefined);
  const look = async () => {
    for (const [i, viewer] of viewers.entries())
      if (tenSeconds[i] === undefined && (await viewer.seen()).bufferedAhead >= 10)
        tenSeconds[i] = await viewer.page.evaluate(() => performance.now());
  };
  // Four seconds of a line that then falls to a hundredth for fifteen.
  await Promise.all(viewers.map((v) => v.until('a first picture', ({ startup }) => startup >= 0)));
  const fall = Date.now() + 4_000;
  while (Date.now() < fall) {
    await look();
    await pause(100);
  }
  reshape(rate(slow));
  const ahead = await Promise.all(viewers.map(async (v) => (await v.seen()).bufferedAhead));
  await pause(15_000);
  reshape(rate(fast));
  await pause(2_000);
  const seen = await Promise.all(viewers.map((v) => v.seen()));
  const stalled = seen.map(({ stalls }) => stalls.reduce((sum, { ms }) => sum + ms, 0));
  figures('waiting', { kinds, ahead, tenSeconds, stalled, startup: seen.map(({ startup }) => startup) });
  await Promise.all(viewers.map((v) => v.close()));
  const without = kinds.indexOf('without');
  for (const [i, kind] of kinds.entries()) {
    expect(stalled[i], `stall with a tracker: ${kind}`).toBeLessThanOrEqual(stalled[without]! + 250);
    expect(ahead[i], `in hand as the line falls: ${kind}`).toBeGreaterThanOrEqual(ahead[without]! / 2);
    // From its own first picture on: four pages that begin at once wait for each other's scripts.
    const filled = (n: number) => tenSeconds[n]! - seen[n]!.startup;
    expect(filled(i), `until ten seconds are in hand: ${kind}`).toBeLessThanOrEqual(filled(without) + 1_000);
  }
});

/** A page with the example of docs/embedding.md that waits a second for the script. */
function waits(script: string): string {
  const text = readFileSync(new URL('../../../../docs/embedding.md', import.meta.url), 'utf8');
  const example = /```html\n(<script>[^`]*setTimeout\(resolve, 1000\)[^`]*)```/
    .exec(text)![1]!
    .replace('dash.all.min.js', '/dashjs.js')
    .replace('https://tracker.example.com/leeway.js', script)
    .replace('wss://tracker.example.com', stack.tracker.replace('http', 'ws'))
    .replace('https://media.example.com/film', '/cmaf');
  return `<!doctype html><title>waits</title><video muted></video>${example}`;
}

test('a page of dash.js that waits a second for the script shares with it, and plays where it does not come', async () => {
  stack.serveCMAF();
  const open = (name: string, host: string) => {
    stack.origin.pages.set(`/${name}.html`, () => waits(`${host}/leeway.js`));
    return Viewer.open(browser, stack.origin.url(`/${name}.html`, 'viewer'), { name });
  };
  const there = await open('there', stack.tracker);
  const silence = await open('silence', `http://127.0.0.1:${await silent()}`);
  const picture = async (viewer: Viewer) =>
    (await viewer.until('a first picture', ({ startup }) => startup >= 0)).startup;
  const startup = { there: Math.round(await picture(there)), silence: Math.round(await picture(silence)) };
  figures('dashjs-waits', { startup });
  await until('a segment by the library', async () => (await there.stats()).titles[0]?.totals.segments.origin > 0);
  expect(await silence.stats()).toBeNull();
  expect(startup.silence).toBeGreaterThan(1_000);
  await Promise.all([there.close(), silence.close()]);
});
