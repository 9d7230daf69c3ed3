/** A page that is put away for going back to, frozen, or whose machine sleeps. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures } from './figures.ts';
import { Stack } from './stack.ts';
import { pause, until, Viewer } from './viewer.ts';

/** How long a page is away. Its links, had they stayed, would be given up by the others after 20 s, its session after 30 s. */
const awayMs = 45_000;

let stack: Stack;

beforeAll(async () => {
  stack = await Stack.start();
});
afterAll(async () => {
  await stack?.stop();
});

/** Has the page note how it was shown; before its scripts. */
const note = () => {
  const seen: string[] = [];
  Object.assign(window, { __lives: seen });
  addEventListener('pageshow', ({ persisted }) => seen.push(persisted ? 'restored' : 'loaded'));
};

/** Has it note when it is frozen; and the library does not hear of a pause, which here is Chromium's doing. Hidden and paused a page has no links for long. */
const unpaused = () => {
  const seen: string[] = [];
  Object.assign(window, { __lives: seen });
  for (const name of ['freeze', 'resume']) document.addEventListener(name, () => seen.push(name));
  addEventListener('pause', (event) => event.stopImmediatePropagation(), true);
};

const lives = (viewer: Viewer) => viewer.page.evaluate(() => (window as unknown as { __lives: string[] }).__lives);

/** Bytes from others since a number of segments. */
const fromOthers = async (viewer: Viewer, since = 0) =>
  (await viewer.told()).segments.slice(since).reduce((sum, { bytes }) => sum + bytes.seed + bytes.peer, 0);

/** What can be told of a viewer before it goes and when it is back. */
async function state(viewer: Viewer) {
  const { self, state, session } = await viewer.stats();
  const told = await viewer.told();
  return { self, state, reconnects: session.reconnects, segments: told.segments.length, links: told.links.length };
}

/** A viewer that has had something from others. */
async function settled(browser: Chromium, name: string, title: string, before = note): Promise<Viewer> {
  const url = stack.page({ level: 0, buffer: 12, attributes: `data-title="${title}"` });
  const viewer = await Viewer.open(browser, url, { name, before });
  await until(`${name}: bytes from others`, () => fromOthers(viewer));
  return viewer;
}

/** It has a session again, and a link that was made since. */
async function linked(viewer: Viewer, before: Awaited<ReturnType<typeof state>>): Promise<void> {
  await until(`${viewer.name}: a session`, async () => (await state(viewer)).state === 'ready');
  await until(`${viewer.name}: a new link`, async () => (await state(viewer)).links > before.links);
}

/** And bytes by it. */
async function back(viewer: Viewer, before: Awaited<ReturnType<typeof state>>): Promise<void> {
  await linked(viewer, before);
  await until(`${viewer.name}: bytes from others`, () => fromOthers(viewer, before.segments));
}

test.concurrent('put away, and gone back to', async () => {
  const browser = await Chromium.start();
  try {
    const stays = await settled(browser, 'stays', 'away');
    const goes = await settled(browser, 'goes', 'away');
    const cdp = await goes.page.createCDPSession();
    const refused: unknown[] = [];
    cdp.on('Page.backForwardCacheNotUsed', (why) => refused.push(why));
    await cdp.send('Page.enable');
    const { self } = await goes.stats();
    await until('a link between the two', async () => (await stays.told()).links.some(({ peer }) => peer === self));
    const before = await state(goes);
    const left = Date.now();
    await goes.page.goto(stack.origin.url('/frame.html?src=about:blank'));
    const unlinked = async () => (await stays.told()).unlinks.filter(({ peer }) => peer === self);
    await until('the other one knows', async () => (await unlinked()).length > 0, 15_000);
    const toldMs = Date.now() - left;
    await goes.page.goBack();
    await until('the page is back', async () => (await lives(goes)).includes('restored'), 15_000).catch((error) => {
      throw new Error(`${error.message}: ${JSON.stringify(refused)}`);
    });
    await back(goes, before);
    const after = await state(goes);
    const notices = (await goes.told()).notices;
    const result = { before, after, toldMs, unlinks: await unlinked(), notices, errors: goes.consoleErrors() };
    figures('back-forward cache', result);
    expect(after.self).toBe(before.self);
    expect(result).toMatchObject({ notices: [], errors: [] });
    expect(result.unlinks.every(({ banned, reason }) => !banned && reason !== 'stalled')).toBe(true);
  } finally {
    await browser.stop();
  }
});

test.concurrent('frozen for longer than its session', async () => {
  const browser = await Chromium.start();
  try {
    const viewer = await settled(browser, 'frozen', 'frozen', unpaused);
    const cdp = await viewer.page.createCDPSession();
    const before = await state(viewer);
    await cdp.send('Page.setWebLifecycleState', { state: 'frozen' });
    await pause(awayMs);
    await cdp.send('Page.setWebLifecycleState', { state: 'active' });
    // Hidden and paused is how it is left; its links are there before play is pressed.
    await linked(viewer, before);
    const after = await state(viewer);
    const result = {
      before,
      after,
      lives: await lives(viewer),
      notices: (await viewer.told()).notices,
      // What the player itself is loading when the browser freezes the page is refused by the browser.
      errors: viewer.consoleErrors().filter((text) => !text.includes('during onfreeze')),
    };
    figures('frozen', result);
    expect(result).toMatchObject({ lives: ['freeze', 'resume'], notices: [], errors: [] });
    expect(after.self).toBe(before.self);
  } finally {
    await browser.stop();
  }
});

test.concurrent('a machine that sleeps for longer than the session of its page', async () => {
  const browser = await Chromium.start();
  try {
    const viewer = await settled(browser, 'asleep', 'asleep');
    const before = await state(viewer);
    browser.signal('SIGSTOP');
    await pause(awayMs);
    browser.signal('SIGCONT');
    await back(viewer, before);
    const after = await state(viewer);
    const told = await viewer.told();
    const result = {
      before,
      after,
      unlinks: told.unlinks,
      notices: told.notices,
      fatal: (await viewer.player()).errors.filter(({ fatal }) => fatal),
    };
    figures('asleep', result);
    expect(result).toMatchObject({ notices: [], fatal: [] });
    expect(after.self).toBe(before.self);
    expect(told.unlinks.filter(({ banned }) => banned)).toEqual([]);
  } finally {
    browser.signal('SIGCONT');
    await browser.stop();
  }
});
