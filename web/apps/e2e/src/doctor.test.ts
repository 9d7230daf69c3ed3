/** `leeway.doctor()` on a page that shares, and on pages with one thing wrong each: it names the fault and the right fix. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures } from './figures.ts';
import { freePort } from './service.ts';
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

interface Finding {
  check: string;
  status: string;
  code: string;
  text: string;
  fix?: string;
}

/** Opens a page, has it looked at once `ready` holds there, and closes it. */
async function examined(name: string, url: string, before?: () => void) {
  const viewer = await Viewer.open(browser, url, { name, before });
  await viewer.page.waitForFunction(() => (window as unknown as PageWindow).leeway);
  const shares = () => viewer.told().then(({ segments }) => segments.some(({ bytes }) => bytes.seed > 0));
  if (name === 'healthy') await until('a piece of the seed', shares);
  const hosts = new Set<string>();
  viewer.page.on('request', (request) => {
    if (request.url().startsWith('http')) hosts.add(new URL(request.url()).host);
  });
  const findings: Finding[] = await viewer.page.evaluate(() => (window as unknown as PageWindow).leeway.doctor());
  const lines = viewer.console.map(({ text }) => text).filter((text) => /^%c(ok|warning|error|skipped) /.test(text));
  await viewer.close();
  return { name, findings, lines, hosts: [...hosts] };
}

const errors = ({ findings }: { findings: Finding[] }) =>
  findings.filter(({ status }) => status === 'error').map(({ check, code, fix }) => ({ check, code, fix }));

test('a page that shares is all green; of one that does not, the fault and the fix are named', async () => {
  const dead = `http://127.0.0.1:${await freePort()}`;
  const elsewhere = stack.origin.url('', 'viewer', 'localhost');
  const socket = stack.tracker.replace('http', 'ws');
  const page = { level: 0, buffer: 12 };
  const healthy = await examined('healthy', stack.page(page));
  const faults = await Promise.all([
    examined('dead tracker', stack.page({ ...page, tracker: dead, script: `${stack.tracker}/leeway.js` })),
    examined(
      'refused origin',
      stack.origin.url(stack.path({ ...page, tracker: stack.tracker }), 'viewer', 'localhost'),
    ),
    examined('policy without the tracker', stack.page({ ...page, policy: "connect-src 'self'" })),
    examined('no WebRTC', stack.page(page), () => Reflect.deleteProperty(window, 'RTCPeerConnection')),
    examined('foreign manifest', stack.page({ ...page, manifest: `${elsewhere}/media/film/480p/index.m3u8` })),
  ]);

  figures('leeway.doctor()', {
    healthy: healthy.findings,
    faults: faults.map(({ name, findings }) => ({ name, findings })),
  });
  expect(healthy.findings.filter(({ status }) => status !== 'ok')).toEqual([]);
  const told = healthy.findings.map(({ check }) => check);
  expect(told.slice(0, 8)).toEqual(['page', 'webrtc', 'scripts', 'worker', 'player', 'consent', 'tracker', 'welcome']);
  expect(told.slice(8)).toEqual(['clock', 'relays', 'site', 'seed', 'links', 'signed', 'piece']);
  expect(healthy.lines).toHaveLength(told.length);
  // The player's own requests are of the page's host.
  const known = [new URL(stack.tracker).host, new URL(stack.origin.url('')).host];
  expect(healthy.hosts.filter((host) => !known.includes(host))).toEqual([]);

  const { host } = new URL(elsewhere);
  expect(Object.fromEntries(faults.map((one) => [one.name, errors(one)]))).toEqual({
    'dead tracker': [
      {
        check: 'tracker',
        code: 'tracker-unreachable',
        fix: expect.stringMatching(/^start the server, or correct host and port: nothing listens there/),
      },
    ],
    'refused origin': [
      {
        check: 'tracker',
        code: 'origin-refused',
        fix: `add it to the site: page_origins: ["${elsewhere}"]`,
      },
    ],
    'policy without the tracker': [
      {
        check: 'tracker',
        code: 'tracker-blocked',
        fix: `add it to the page's Content-Security-Policy: connect-src ${socket}`,
      },
    ],
    'no WebRTC': [{ check: 'webrtc', code: 'no-webrtc', fix: expect.stringContaining('without them') }],
    'foreign manifest': [
      {
        check: 'site',
        code: 'foreign-manifest',
        fix: `add it to the site: hosts: ["${host}"]; hosts serve the same paths`,
      },
    ],
  });
});

test('the page /doctor of a tracker looks at a site as a page of another origin', async () => {
  const page = await browser.window();
  const hosts = new Set<string>();
  page.on('request', (request) => {
    if (request.url().startsWith('http')) hosts.add(new URL(request.url()).host);
  });
  const examine = async (origin: string, manifest: string) => {
    await page.goto(`${stack.tracker}/doctor#page=${origin}&manifest=${encodeURIComponent(manifest)}`);
    await page.reload();
    await page.click('#go');
    await page.waitForFunction(() => document.getElementById('main')!.dataset.state === 'done', { timeout: 60_000 });
    return page.evaluate(() => ({
      sentence: document.getElementById('sentence')!.textContent,
      lines: [...document.querySelectorAll<HTMLElement>('#findings li')].map(({ dataset }) => dataset.check),
      ...(JSON.parse((document.getElementById('json') as HTMLTextAreaElement).value) as {
        healthy: boolean;
        findings: Finding[];
      }),
    }));
  };
  const origin = new URL(stack.origin.url('')).origin;
  const healthy = await examine(origin, stack.origin.url('/media/film/master.m3u8'));
  figures('/doctor', { healthy });
  expect(healthy.findings.filter(({ status }) => status !== 'ok')).toEqual([]);
  expect(healthy).toMatchObject({ healthy: true, sentence: `Pages of ${origin} can share, from here.` });
  expect(healthy.lines).toEqual(healthy.findings.map(({ check }) => check));
  expect(healthy.lines.slice(-4)).toEqual(['relays', 'site', 'seed', 'links']);

  const refused = await examine('https://other.example', stack.origin.url('/media/film/master.m3u8'));
  expect(refused).toMatchObject({ healthy: false, sentence: 'One thing is wrong.' });
  expect(errors(refused)).toEqual([
    { check: 'tracker', code: 'origin-refused', fix: 'add it to the site: page_origins: ["https://other.example"]' },
  ]);
  expect([...hosts]).toEqual([new URL(stack.tracker).host]);
  await page.close();
});
