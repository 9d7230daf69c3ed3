/** Nothing that Leeway does asks the viewer for anything, unless the site wants it so and the browser guards it. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures } from './figures.ts';
import { Firefox } from './firefox.ts';
import type { Front } from './front.ts';
import { Stack } from './stack.ts';
import { until, Viewer } from './viewer.ts';

let stack: Stack;
let front: Front;
let base: string;

beforeAll(async () => {
  // The page is on a public address, where browsers guard the local network; so are tracker and seed.
  stack = await Stack.start({ split: true, publicSeed: true, policy: { local: 'ask' } });
  ({ base, front } = await stack.publish());
});
afterAll(async () => {
  await front?.stop();
  await stack?.stop();
});

/** Links by role, and attempts that failed of the local network. */
async function links(viewer: Viewer): Promise<{ roles: string[]; denied: number }> {
  const [title] = (await viewer.stats()).titles;
  const roles: string[] = (title?.engine?.peers ?? []).map(({ role }: { role: string }) => role);
  return { roles: roles.sort(), denied: title?.linkFailures['lna-denied'] ?? 0 };
}

/** Two viewers of a title, until `enough` holds for the second. */
async function two(browser: Chromium, title: string, enough: (seen: Awaited<ReturnType<typeof links>>) => boolean) {
  const path = stack.path({ tracker: base, level: 0, buffer: 12, attributes: `data-title="${title}"` });
  const first = await Viewer.open(browser, base + path, { name: `${title}, first` });
  const before = await first.permissions();
  await first.until('4 s of film', (seen) => seen.currentTime > 4);
  const second = await Viewer.open(browser, base + path, { name: `${title}, second` });
  await second.until('4 s of film', (seen) => seen.currentTime > 4);
  await until(`${title}: the links that there can be`, async () => enough(await links(second)));
  const seen = await links(second);
  const asked = await browser.permissionRequests();
  const after = await second.permissions();
  return { second, ...seen, asked, before, after, errors: second.consoleErrors() };
}

test.concurrent('with the flags of a user nothing is asked, and viewers meet', async () => {
  const browser = await Chromium.start(['--ignore-certificate-errors']);
  try {
    const met = ({ roles }: { roles: string[] }) => roles.includes('viewer') && roles.includes('seed');
    const { second, ...result } = await two(browser, 'unguarded', met);
    // What a page that does ask looks like.
    const refused = await second.page.evaluate(() => fetch('http://10.77.0.2:9/').catch((error) => String(error)));
    const control = await browser.permissionRequests();
    figures('permissions', { ...result, refused, control });
    expect(result).toMatchObject({ asked: 0, roles: ['seed', 'viewer'], denied: 0, errors: [] });
    expect(Object.keys(result.before).length).toBeGreaterThan(10);
    expect(result.after).toEqual(result.before);
    expect(control).toBeGreaterThan(0);
  } finally {
    await browser.stop();
  }
});

test.concurrent('where WebRTC is guarded and the site lets the browser ask, a refusal is lna-denied', async () => {
  const browser = await Chromium.start([
    '--enable-features=LocalNetworkAccessChecksWebRTC',
    '--ignore-certificate-errors',
  ]);
  try {
    const denied = ({ denied }: { denied: number }) => denied > 0;
    const { second: _, ...result } = await two(browser, 'guarded', denied);
    figures('permissions, guarded', result);
    expect(result).toMatchObject({ roles: ['seed'], errors: [] });
    expect(result.asked).toBeGreaterThan(0);
    expect(result.denied).toBeGreaterThan(0);
    expect([result.before['local-network'], result.after['local-network']]).toEqual(['prompt', 'denied']);
  } finally {
    await browser.stop();
  }
});

test('two Firefoxes behind one router meet at a public page, and are not asked', async () => {
  const silent = await Stack.start({ split: true, publicSeed: true, policy: {} });
  const published = await silent.publish();
  const browser = await Firefox.start();
  try {
    const path = silent.path({ tracker: published.base, level: 0, buffer: 12 });
    const first = await Viewer.open(browser, published.base + path, { name: 'firefox, first' });
    await first.until('4 s of film', (seen) => seen.currentTime > 4);
    const second = await Viewer.open(browser, published.base + path, { name: 'firefox, second' });
    await until('links with seed and viewer', async () => (await links(second)).roles.length === 2);
    const { roles, denied } = await links(second);
    const { 'local-network': state } = await second.permissions();
    figures('permissions, firefox', { roles, denied, state });
    // A prompt without an answer keeps a link from coming about: that there is one says that Firefox has not asked.
    expect({ roles, denied, state }).toEqual({ roles: ['seed', 'viewer'], denied: 0, state: 'prompt' });
  } finally {
    await browser.stop();
    await published.front.stop();
    await silent.stop();
  }
});
