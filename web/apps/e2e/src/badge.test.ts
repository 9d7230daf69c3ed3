import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { Stack } from './stack.ts';
import { until, Viewer } from './viewer.ts';
import type { PageWindow } from './watched.ts';

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

const recording = readFileSync(new URL('../../../../spec/vectors/recorded-go.jsonl', import.meta.url), 'utf8');

/** An element of the badge's shadow tree, or of the panel's. */
const inside = (viewer: Viewer, name: string, selector: string, press = false) =>
  viewer.page.evaluate(
    (id, what, click) => {
      const found = document.getElementById(id)?.shadowRoot?.querySelector<HTMLElement>(what);
      if (click) found?.click();
      return (
        found && {
          text: found.textContent ?? '',
          label: found.getAttribute('aria-label'),
          checked: found.getAttribute('aria-checked'),
          shown: found.checkVisibility(),
        }
      );
    },
    `leeway-${name}`,
    selector,
    press,
  );

const state = (viewer: Viewer) => viewer.stats().then((stats) => stats?.state);
const stored = (viewer: Viewer) => viewer.page.evaluate(() => localStorage.length);

test('a badge tells what is shared, and switches it off until it is switched on again; a panel tells why', async () => {
  const url = stack.page({ manifest: '/media/film/480p/index.m3u8', buffer: 12, attributes: 'data-badge' });
  const first = await Viewer.open(browser, url, { name: 'first' });
  await first.until('6 s of film', ({ currentTime }) => currentTime > 6);
  const second = await Viewer.open(browser, url, { name: 'second' });
  await until('bytes of the first one', async () => {
    const badge = await inside(second, 'badge', '.badge');
    return /[1-9].* taken/.test(badge?.label ?? '');
  });

  await second.page.evaluate(() => (window as unknown as PageWindow).leeway.debug());
  await until('a row of the panel', async () => {
    const panel = await inside(second, 'debug', '.panel');
    return panel?.shown && /viewer(direct|relay)/.test(panel.text) && /seg-\d+\.ts/.test(panel.text);
  });

  // A recording in its place, and back.
  await second.page.evaluate((text) => {
    const input = document.getElementById('leeway-debug')!.shadowRoot!.querySelector<HTMLInputElement>('[type=file]')!;
    const files = new DataTransfer();
    files.items.add(new File([text], 'recorded.jsonl'));
    input.files = files.files;
    input.dispatchEvent(new Event('change'));
  }, recording);
  await until('a recording', async () => {
    const shown = await inside(second, 'debug', 'main');
    return /At 0\.0 s.*Segments.*Peers/s.test(shown?.text ?? '');
  });
  await inside(second, 'debug', 'input + button', true);
  await until('the panel', async () => /Viewers \d/.test((await inside(second, 'debug', 'main'))?.text ?? ''));

  await inside(second, 'badge', '.badge', true);
  expect(await inside(second, 'badge', '.switch')).toMatchObject({ checked: 'true', shown: true });
  await inside(second, 'badge', '.switch', true);
  expect(await inside(second, 'badge', '.badge')).toMatchObject({ text: 'Sharing is off' });
  expect([await state(second), await stored(second)]).toEqual(['idle', 1]);
  const { currentTime } = await second.seen();
  await second.until('more of the film', (seen) => seen.currentTime > currentTime + 2);

  await second.page.reload({ waitUntil: 'domcontentloaded' });
  await until('the badge', async () => (await inside(second, 'badge', '.badge'))?.text === 'Sharing is off');
  await second.until('the film', (seen) => seen.currentTime > 1);
  await second.page.evaluate(() => (window as unknown as PageWindow).leeway.consent(true));
  expect(await state(second)).toBe('idle');
  await inside(second, 'badge', '.switch', true);
  await until('a session', async () => (await state(second)) === 'ready');
  expect(await stored(second)).toBe(0);
  for (const viewer of [first, second]) {
    const { stalls, errors } = await viewer
      .seen()
      .then((seen) => ({ stalls: seen.stalls, errors: viewer.consoleErrors() }));
    expect({ stalls, errors }, viewer.name).toEqual({ stalls: [], errors: [] });
  }
});
