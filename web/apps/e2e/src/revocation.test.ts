import { afterEach, beforeEach, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures } from './figures.ts';
import { metrics, sum } from './service.ts';
import { Stack } from './stack.ts';
import { type Bytes, pause, Viewer } from './viewer.ts';

let browser: Chromium;
let stack: Stack;

beforeEach(async () => {
  stack = await Stack.start();
  browser = await Chromium.start();
});
afterEach(async () => {
  await browser?.stop();
  await stack?.stop();
});

const open = (name: string) => Viewer.open(browser, stack.page({ level: 0, buffer: 20 }), { name });

/** Runs a command at the admin port. */
async function leeway(...args: string[]): Promise<number> {
  await stack.operate(...args);
  return Date.now();
}

interface Title {
  off: string | null;
  links: { open: number };
  totals: { bytes: Bytes; reasons: Record<string, number> };
  engine?: { segments: number };
}

const title = async (viewer: Viewer): Promise<Title> => (await viewer.stats()).titles[0];

const fromOthers = ({ totals: { bytes } }: Title) => bytes.seed + bytes.peer;

/** Waits until something holds for the titles of all viewers; answers how long that took, in seconds. */
async function until(what: string, viewers: Viewer[], test: (title: Title) => boolean, since = Date.now()) {
  for (;;) {
    const titles = await Promise.all(viewers.map(title));
    const seconds = (Date.now() - since) / 1000;
    if (titles.every((t) => t && test(t))) return seconds;
    if (seconds > 45) throw new Error(`e2e: ${what} not within 45 s: ${JSON.stringify(titles)}`);
    await pause(200);
  }
}

test('a film that is taken down is no longer served, a site that is off has no links, and playback goes on', async () => {
  const first = await open('first');
  await first.until('10 s ahead', (seen) => seen.bufferedAhead > 10);
  const second = await open('second');
  await until('something of others', [first, second], (t) => fromOthers(t) > 0 && t.links.open > 1);
  const both = [first, second];

  const down = await leeway('purge', 'e2e', '/media/film/', '--for', '1h');
  const forgotten = await until('nothing is held', both, (t) => t.engine?.segments === 0, down);
  const before = await Promise.all(both.map(async (v) => fromOthers(await title(v))));
  const [seen, sent] = [await second.seen(), sum(await metrics(stack.admin), 'leeway_seed_sent_bytes_total')];
  const third = await open('third');
  await second.until('10 s more of film', (now) => now.currentTime > seen.currentTime + 10, 40_000);
  await third.until('6 s of film', (now) => now.currentTime > 6, 40_000);
  const after = await Promise.all([...both, third].map(title));
  const seedSent = sum(await metrics(stack.admin), 'leeway_seed_sent_bytes_total') - sent;

  const off = await leeway('switch', 'e2e', 'off');
  const all = [...both, third];
  const unlinked = await until('no links', all, (t) => t.links.open === 0 && t.off === 'policy', off);
  const dark = sum(await metrics(stack.admin), 'leeway_tracker_delivery_off', 'reason="operator"');
  await leeway('switch', 'e2e', 'on');
  const fourth = await open('fourth');
  const linked = await until('links again', [fourth], (t) => t.links.open > 1 && t.off === null);
  const stalls = (await Promise.all([...all, fourth].map((v) => v.seen()))).flatMap((s) => s.stalls);
  const errors = [...all, fourth].flatMap((v) => v.consoleErrors());
  figures('taken down', { forgotten, unlinked, linked, seedSent, stalls: stalls.length });

  expect(after.slice(0, 2).map(fromOthers)).toEqual(before);
  expect(fromOthers(after[2]!)).toBe(0);
  expect(after[2]!.totals.bytes.origin).toBeGreaterThan(0);
  expect(after[2]!.totals.reasons['no-cert']).toBeGreaterThan(0);
  expect(seedSent).toBe(0);
  expect(dark).toBe(1);
  for (const seconds of [forgotten, unlinked]) expect(seconds).toBeLessThan(45);
  expect([stalls, errors]).toEqual([[], []]);
  await Promise.all([...all, fourth].map((v) => v.close()));
});
