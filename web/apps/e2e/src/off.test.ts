import { afterAll, beforeAll, expect, test } from 'vitest';
import { rows } from '../../../scripts/browsers/rows.mjs';
import { Chromium } from './browser.ts';
import { figures } from './figures.ts';
import { Stack } from './stack.ts';
import { pause, until, Viewer } from './viewer.ts';
import type { PageOptions } from './watched.ts';

let browser: Chromium;
let stack: Stack;

beforeAll(async () => {
  stack = await Stack.start();
  // The script from the page's own host: what is tested is the library's silence, not the browser's address checks.
  const script = Buffer.from(await (await fetch(`${stack.tracker}/leeway.js`)).arrayBuffer());
  stack.origin.pages.set('/leeway.js', () => script);
  browser = await Chromium.start();
});
afterAll(async () => {
  await browser?.stop();
  await stack?.stop();
});

interface Off {
  name: string;
  code: string;
  options: PageOptions;
  host?: string;
  before?: () => void;
}

const offs: Off[] = [
  {
    name: 'no WebRTC',
    code: 'no-webrtc',
    options: {},
    before: () => {
      Reflect.deleteProperty(window, 'RTCPeerConnection');
      Reflect.deleteProperty(window, 'webkitRTCPeerConnection');
    },
  },
  { name: 'insecure context', code: 'insecure-context', options: { script: '/leeway.js' }, host: '10.77.0.2' },
  {
    name: 'signed manifest without a token',
    code: 'needs-token',
    options: { manifest: '/media/film/master.m3u8?token=0123456789abcdef' },
  },
];

test.concurrent('where peer delivery cannot be: one coded event, and the page plays as if the script were not there', async () => {
  const result = await Promise.all(
    offs.map(async ({ name, code, options, host, before }) => {
      const all = { tracker: stack.tracker, level: 0, buffer: 12, ...options };
      const viewer = await Viewer.open(browser, stack.origin.url(stack.path(all), 'viewer', host), { name, before });
      const seen = await viewer.until('6 s of film', (s) => s.currentTime > 6);
      const told = await viewer.told();
      const player = await viewer.player();
      await viewer.close();
      return {
        name,
        expected: code,
        codes: told.notices.map((n) => n.code),
        complete: told.notices.every((n) => n.message.length > 10 && n.hint.length > 5),
        links: told.links.length,
        fromOthers: told.segments.reduce((sum, s) => sum + s.bytes.seed + s.bytes.peer, 0),
        stalls: seen.stalls,
        errors: viewer.consoleErrors(),
        fatal: player.errors.filter((e) => e.fatal).length,
      };
    }),
  );
  figures('off', { cases: result });
  for (const r of result) {
    expect(r.codes, r.name).toEqual([r.expected]);
    expect(r, r.name).toMatchObject({ complete: true, links: 0, fromOthers: 0, stalls: [], errors: [], fatal: 0 });
  }
});

/** Bytes from other peers, once there are some: a busy machine has links late. */
async function fromOthers(viewer: Viewer): Promise<number> {
  let bytes = 0;
  await until(
    `${viewer.name}: bytes from others`,
    async () => {
      bytes = (await viewer.told()).segments.reduce((sum, s) => sum + s.bytes.seed + s.bytes.peer, 0);
      return bytes > 0;
    },
    20_000,
  );
  return bytes;
}

/** Runs in the page ahead of all scripts: takes APIs from it, and tells which were there. */
function take(apis: string[]): void {
  const taken = apis.filter((api) => {
    const [owner, member] = api.split('.') as [string, string?];
    const { prototype } = (window as unknown as Record<string, { prototype?: object }>)[owner] ?? {};
    const [from, name] = !member || owner === 'Window' ? [window, member ?? owner] : [prototype, member];
    return from && name in from && Reflect.deleteProperty(from, name);
  });
  Object.assign(window, { __taken: taken });
}

test.concurrent('a page plays and shares without all that a browser may lack (docs/browsers.md)', async () => {
  const apis = rows.filter(({ without, off }) => without && !off).flatMap((row) => row.apis);
  // Members first: without its interface none is found.
  apis.sort((a, b) => Number(b.includes('.')) - Number(a.includes('.')));
  const before = new Function(`(${take})(${JSON.stringify(apis)})`) as () => void;
  const options = { level: 0, buffer: 12, attributes: 'data-title="bare" data-badge' };
  const [host, bare] = [
    await Viewer.open(browser, stack.page(options), { name: 'all' }),
    await Viewer.open(browser, stack.page(options), { name: 'bare', before }),
  ];
  await bare.until('6 s of film', (s) => s.currentTime > 6);
  const others = await fromOthers(bare);
  const taken = await bare.page.evaluate(() => (window as unknown as { __taken: string[] }).__taken);
  const { notices } = await bare.told();
  figures('bare', { taken, others, notices });
  expect(taken).toEqual(expect.arrayContaining(['Worker', 'BroadcastChannel', 'Navigator.locks', 'Navigator.storage']));
  expect(others).toBeGreaterThan(0);
  expect(notices).toEqual([]);
  expect(bare.consoleErrors()).toEqual([]);
  await Promise.all([host.close(), bare.close()]);
});

test.concurrent('the tag before hls.js, after it, and without it', async () => {
  const open = (name: string, options: PageOptions) =>
    Viewer.open(browser, stack.page({ level: 0, buffer: 12, ...options, attributes: 'data-title="drop-in"' }), {
      name,
    });
  const [before, after, none] = await Promise.all([
    open('before', { order: 'before' }),
    open('after', { order: 'after' }),
    open('none', { player: 'none' }),
  ]);
  await Promise.all([before, after].map((v) => v.until('6 s of film', (s) => s.currentTime > 6)));
  // The drop-in waits a while for a player that comes late before it says that there is none.
  const deadline = Date.now() + 20_000;
  while (none.console.length === 0 && Date.now() < deadline) await pause(200);
  await pause(1000);
  const used = await Promise.all([before, after].map(fromOthers));
  figures('drop-in', { before: used[0], after: used[1], without: none.console });
  expect(used[0], 'before hls.js').toBeGreaterThan(0);
  expect(used[1], 'after hls.js').toBeGreaterThan(0);
  expect(none.console.length, 'one line without a player').toBe(1);
  expect(none.consoleErrors()).toEqual([]);
  for (const v of [before, after]) expect(v.consoleErrors(), v.name).toEqual([]);
  await Promise.all([before, after, none].map((v) => v.close()));
});

test.concurrent("the browser's local-network checks for WebRTC switched on", async () => {
  // A page on a public address: only there do the checks have something to say. Its certificate has no issuer.
  const { base, front } = await stack.publish();
  const checked = await Chromium.start([
    '--enable-features=LocalNetworkAccessChecksWebRTC',
    '--ignore-certificate-errors',
  ]);
  try {
    const viewers: Viewer[] = [];
    for (const name of ['first', 'second']) {
      viewers.push(
        await Viewer.open(
          checked,
          base + stack.path({ tracker: base, level: 0, buffer: 12, attributes: 'data-title="checks"' }),
          { name },
        ),
      );
      await pause(2500);
    }
    const permitted = await viewers[0]!.permissions();
    await Promise.all(viewers.map((v) => v.until('10 s of film', (s) => s.currentTime > 10)));
    // An attempt that the browser keeps from the network says nothing; the library gives it twelve seconds.
    const denied = async (v: Viewer): Promise<number> =>
      (await v.stats()).titles.reduce(
        // biome-ignore lint/suspicious/noExplicitAny: the library's figures
        (sum: number, title: any) => sum + (title.linkFailures['lna-denied'] ?? 0),
        0,
      );
    const deadline = Date.now() + 25_000;
    for (const v of viewers) {
      while ((await v.told()).links.length + (await denied(v)) === 0 && Date.now() < deadline) await pause(500);
    }
    const result = await Promise.all(
      viewers.map(async (v) => {
        const told = await v.told();
        return {
          name: v.name,
          notices: told.notices.map((n) => n.code),
          links: told.links.map((l) => l.role),
          denied: await denied(v),
          reasons: [...new Set(told.segments.map((s) => s.reason ?? ''))],
          bytes: told.segments.reduce(
            (sum, s) => ({
              origin: sum.origin + s.bytes.origin,
              seed: sum.seed + s.bytes.seed,
              peer: sum.peer + s.bytes.peer,
            }),
            { origin: 0, seed: 0, peer: 0 },
          ),
          stalls: (await v.seen()).stalls,
          errors: v.consoleErrors(),
        };
      }),
    );
    const asked = await checked.permissionRequests();
    figures('local-network checks', { viewers: result, asked, permitted });
    // By the policy's default the browser is given nothing to ask about.
    expect([asked, permitted['local-network']]).toEqual([0, 'prompt']);
    expect(await viewers[1]!.permissions()).toEqual(permitted);
    for (const r of result) {
      expect(r, r.name).toMatchObject({ stalls: [], errors: [] });
      // Links where the browser lets them be; where it does not, the library says so.
      expect(r.links.length + r.denied, r.name).toBeGreaterThan(0);
    }
  } finally {
    await checked.stop();
    await front.stop();
  }
});
