/** The drop-in's scripts as they go out, minified, on a page made of fakes. */

import { createHash } from 'node:crypto';
import { runInNewContext } from 'node:vm';
import type { Playback } from '@leeway/core';
import { beforeAll, expect, test } from 'vitest';
import { budgets, type Kind, sizes } from '../build.mjs';
import { built, Page } from './testing.ts';

const id = (n: number) => Buffer.alloc(16, n).toString('base64url');

interface Global {
  open(manifest: string): Playback;
  stats(): { session: object; titles: { playback: object; totals: object; engine: object; links: object }[] };
}

// It takes seconds, on a busy machine a minute.
beforeAll(() => built, 240_000);

test('the packed scripts find the player, join, and fetch and run the engine', async () => {
  const page = new Page();
  const { script, engine, seldom } = await built;
  runInNewContext(script.code, page.window);
  expect(page.socket).toBeUndefined();
  page.timers.shift()!.f();
  expect(page.socket).toBeUndefined();
  // It connects in a turn of its own.
  const connecting = page.timers.at(-1)!;
  expect(connecting.ms).toBe(0);
  const Hls = page.hls();
  page.window.Hls = Hls;
  const player = new Hls();
  player.start();
  connecting.f();
  page.socket!.onopen();
  await new Promise(setImmediate);
  expect(page.sent[0]).toEqual({ type: 'hello', version: 1, client: 'leeway-js/0.1.0', site: 'demo' });
  page.socket!.onmessage({
    data: JSON.stringify({
      type: 'welcome',
      session: id(9),
      ticket: 't',
      server_time_ms: 1,
      site: { name: 'demo', hosts: ['video.example.com'] },
      ice_servers: [],
      verify_keys: [],
      revocations: [],
      policy: { role: 'full', max_links: 8, relay: 'allow', local: 'if-granted', signed_manifests: 'off' },
      limits: { message_bytes: 65_536, swarms: 4, messages_per_second: 50, links: 32 },
      update_interval_ms: 10_000,
      stats_interval_ms: 10_000,
    }),
  });
  await new Promise(setImmediate);
  // A leech, since the viewer asked to save data.
  expect(page.sent[1]).toEqual({
    type: 'join',
    id: 1,
    title: '/film',
    manifest: '/film/master.m3u8',
    role: 'leech',
    want: 8,
    offers: [],
  });
  page.socket!.onmessage({ data: JSON.stringify({ type: 'joined', id: 1, swarm: id(1), viewers: 1, seeds: 0 }) });
  await new Promise(setImmediate);
  // The engine waits for the first picture.
  expect(page.elements).toHaveLength(0);
  page.mediaListeners.get('playing')!({ type: 'playing' });
  expect(page.timers.at(-1)!.ms).toBeLessThanOrEqual(100);
  page.timers.at(-1)!.f();
  await new Promise(setImmediate);
  // The second script lies beside the first, on the page's host; the tracker has it too.
  const integrity = `sha256-${createHash('sha256').update(engine.code).digest('base64')}`;
  const name = `${engine.name}?${integrity.slice(-9)}`;
  expect(page.elements).toMatchObject([
    { src: `https://video.example.com/static/${name}`, integrity, crossOrigin: 'anonymous', nonce: 'abc' },
  ]);
  page.elements[0]!.onerror();
  await new Promise(setImmediate);
  expect(page.elements[1]).toMatchObject({ src: `https://t.example.com/${name}`, integrity, nonce: 'abc' });
  page.run(page.elements[1]!, engine.code);
  // Nothing is left of either in the page.
  expect(page.removed).toEqual(page.elements);
  await new Promise(setImmediate);

  const leeway = page.window.leeway as Global;
  expect(Object.keys(leeway)).toEqual(
    expect.arrayContaining(['state', 'start', 'stop', 'consent', 'open', 'on', 'stats']),
  );
  const stats = leeway.stats();
  expect(Object.keys(stats.session).sort()).toEqual(['dropped', 'malformed', 'reconnects', 'unknown']);
  const [title] = stats.titles;
  expect(title).toMatchObject({
    manifest: player.url,
    title: '/film',
    swarm: '01010101010101010101010101010101',
    viewers: 1,
    seeds: 0,
    links: { open: 0, opening: 0 },
    linkFailures: {},
    off: null,
    totals: { bytes: { origin: 0, seed: 0, peer: 0 }, segments: { origin: 0 }, reasons: {}, wasted_bytes: 0 },
    playback: { stalls: 0, stall_ms: 0, played_ms: 0, played_bits: 0, switches: 0 },
    engine: { peers: [], cacheBytes: 0, linking: true, off: null, counters: {}, ranges: [], segments: 0 },
  });
  expect([...page.hlsListeners.keys()].sort()).toEqual([
    'hlsDestroying',
    'hlsLevelSwitched',
    'hlsManifestLoading',
    'hlsMediaAttaching',
    'hlsMediaDetaching',
  ]);
  expect([...page.mediaListeners.keys()]).toEqual(
    expect.arrayContaining(['play', 'playing', 'timeupdate', 'waiting', 'pause']),
  );
  expect(page.windowListeners.sort()).toEqual([
    'freeze',
    'online',
    'pagehide',
    'pageshow',
    'resume',
    'securitypolicyviolation',
    'visibilitychange',
  ]);
  const Loader = player.config.fLoader as new (config: object) => { stats: object };
  expect(new Loader(player.config).stats).toEqual({ loading: { start: 0 } });
  await playsParts(page, leeway.open(player.url), seldom);
}, 60_000);

/** A player of the page asks for a part: the engine has its own script come, from where it came itself. */
async function playsParts(page: Page, playback: Playback, { name, code }: Awaited<typeof built>['seldom']) {
  const url = 'https://video.example.com/film/1.0.m4s';
  const part = { url, startMs: 0, durationMs: 500, sequence: 1, index: 0 };
  const load = () =>
    playback.load({
      ...part,
      rendition: 'main-0',
      bitrate: 1e6,
      adaptive: false,
      deadlineMs: () => 1000,
      upcoming: [],
      track: 'main',
      live: true,
      playlist: 'https://video.example.com/film/index.m3u8?_HLS_msn=1',
      part: { sequence: 1, index: 0, listed: () => [part] },
      origin: async () => ({ data: new ArrayBuffer(1000), status: 200, url }),
    }).result;
  const fromOrigin = { source: 'origin', reason: 'no-holder', bytes: { origin: 1000, seed: 0, peer: 0 }, status: 200 };
  expect(await load()).toMatchObject(fromOrigin);
  const integrity = `sha256-${createHash('sha256').update(code).digest('base64')}`;
  const src = `https://t.example.com/${name}?${integrity.slice(-9)}`;
  expect(page.elements.slice(2)).toMatchObject([{ src, integrity, crossOrigin: 'anonymous', nonce: 'abc' }]);
  page.run(page.elements[2]!, code);
  await new Promise(setImmediate);
  expect(await load()).toMatchObject(fromOrigin);
  expect([page.elements.length, page.removed]).toEqual([3, page.elements]);
}

test('the packed scripts find each player whose adapter is a part, fetch that part, and have it attached', async () => {
  const { script, ...parts } = await built;
  const page = new Page();
  runInNewContext(script.code, page.window);
  page.window.shaka = { Player: class {} };
  await new Promise(setImmediate);
  const integrity = `sha256-${createHash('sha256').update(parts.shaka.code).digest('base64')}`;
  const src = `https://video.example.com/static/${parts.shaka.name}?${integrity.slice(-9)}`;
  expect(page.elements).toMatchObject([{ src, integrity, crossOrigin: 'anonymous', nonce: 'abc' }]);
  const told: { code: string; message: string }[] = [];
  (page.window.leeway as { on(name: string, f: (notice: never) => void): void }).on('notice', (n) => told.push(n));
  page.run(page.elements[0]!, parts.shaka.code);
  await new Promise(setImmediate);
  // The page's Shaka is none that the adapter takes: it was asked, and said so.
  expect(told).toMatchObject([{ code: 'engine-missing', message: expect.stringContaining('attachShakaClass needs') }]);
}, 60_000);

test('the packed script loads the part for files where a page fetches one, and fetches without it where it does not come', async () => {
  const { script, more } = await built;
  const page = new Page();
  const fetched: unknown[] = [];
  page.window.Headers = Headers;
  page.window.fetch = async (url: string, { headers, ...rest }: RequestInit) =>
    fetched.push([url, [...(headers as Headers)], rest]) && 'the answer';
  runInNewContext(script.code, page.window);
  const { fetch } = page.window.leeway as { fetch(url: string, options: object): Promise<unknown> };
  const answer = fetch('/a.iso', {
    range: { first: 5 },
    request: { credentials: 'include', headers: { 'x-key': 'k' } },
  });
  const integrity = `sha256-${createHash('sha256').update(more.code).digest('base64')}`;
  const name = `${more.name}?${integrity.slice(-9)}`;
  expect(page.elements).toMatchObject([{ src: `https://video.example.com/static/${name}`, integrity }]);
  page.elements[0]!.onerror();
  await new Promise(setImmediate);
  page.elements[1]!.onerror();
  expect(await answer).toBe('the answer');
  const headers = [
    ['range', 'bytes=5-'],
    ['x-key', 'k'],
  ];
  expect(fetched).toEqual([['/a.iso', headers, { credentials: 'include', signal: undefined }]]);
  // It is asked for again then, and once for all that want it: it gives up a file as the page fetches the next one.
  const two = ['/b.iso', '/c.iso'].map((url) => fetch(url, {}));
  expect(page.elements.slice(2)).toMatchObject([{ src: `https://video.example.com/static/${name}` }]);
  (page.elements[2] as unknown as { take(part: object): void }).take({
    fetchFile: async (_leeway: unknown, url: string) => url,
  });
  expect(await Promise.all([...two, fetch('/d.iso', {})])).toEqual(['/b.iso', '/c.iso', '/d.iso']);
  expect(page.elements).toHaveLength(3);
}, 60_000);

test('players are let go where there is no peer delivery, and found once more when consent is given anew', async () => {
  const page = new Page();
  delete page.window.RTCPeerConnection;
  const { script } = await built;
  runInNewContext(script.code, page.window);
  const Hls = page.hls();
  const { trigger } = Hls.prototype;
  page.window.Hls = Hls;
  const leeway = page.window.leeway as { state: string; consent(given: boolean): void };
  const found = () => [leeway.state, Hls.prototype.trigger !== trigger];
  expect(found()).toEqual(['idle', true]);
  page.timers.shift()!.f();
  expect(found()).toEqual(['off', false]);
  leeway.consent(false);
  expect(found()).toEqual(['idle', true]);
  // There still is none.
  leeway.consent(true);
  expect(found()).toEqual(['off', false]);
}, 60_000);

test('a page where peer delivery is off is not told that it has no player', async () => {
  const page = new Page();
  delete page.window.RTCPeerConnection;
  const { script } = await built;
  runInNewContext(script.code, page.window);
  page.timers.shift()!.f();
  // It comes later, and is not looked for any more.
  page.window.Hls = page.hls();
  page.timers.find(({ ms }) => ms === 10_000)!.f();
  expect(page.window.leeway).toMatchObject({ state: 'off' });
  expect((page.window.leeway as Global).stats()).toMatchObject({ notice: { code: 'no-webrtc' } });
}, 60_000);

test('an element of the page that has the ID leeway is not taken for the library', async () => {
  const page = new Page();
  // Browsers have an element under its ID where nothing else is.
  page.window.leeway = (page.window.document as { currentScript: object }).currentScript;
  const { script } = await built;
  runInNewContext(script.code, page.window);
  const { leeway } = page.window;
  expect(leeway).toMatchObject({ state: 'idle' });
  runInNewContext(script.code, page.window);
  expect(page.window.leeway).toBe(leeway); // a second tag
}, 60_000);

test('what the viewer has switched off the page does not switch on before the badge is there', async () => {
  const page = new Page();
  const { dataset } = (page.window.document as { currentScript: { dataset: Record<string, string> } }).currentScript;
  dataset.badge = '';
  const stored: Record<string, string> = { leeway: 'off' };
  page.window.localStorage = stored;
  const { script } = await built;
  runInNewContext(script.code, page.window);
  const leeway = page.window.leeway as { consent(given: boolean): void };
  const connects = () => {
    for (const { f, ms } of page.timers.splice(0)) if (!ms) f();
    leeway.consent(true);
    for (const { f, ms } of page.timers.splice(0)) if (!ms) f();
    return page.socket !== undefined;
  };
  expect(connects()).toBe(false);
  // As the badge's switch does it.
  delete stored.leeway;
  expect(connects()).toBe(true);
}, 60_000);

test('a page that does not reach the tracker is told whether its origin may', async () => {
  const page = new Page();
  const said: unknown[] = [];
  const asked: string[] = [];
  page.window.console = { info: (...words: unknown[]) => said.push(...words) };
  page.window.fetch = async (url: URL) => {
    asked.push(url.href);
    return { text: async () => 'refused: pages of https://www.example.com may not join.' };
  };
  const { script } = await built;
  runInNewContext(script.code, page.window);
  const leeway = page.window.leeway as { notice(n: object): void };
  leeway.notice({ code: 'no-player', message: '', hint: '' });
  leeway.notice({ code: 'tracker-unreachable', message: '', hint: '' });
  await new Promise(setImmediate);
  expect(asked).toEqual(['https://t.example.com/allowed']);
  expect(said.join()).toContain('refused: pages of https://www.example.com');
  // Whatever comes of the question, the page notices nothing.
  page.window.fetch = () => Promise.reject(new Error('blocked'));
  leeway.notice({ code: 'tracker-unreachable', message: '', hint: '' });
  await new Promise(setImmediate);
});

test('the scripts of the drop-in stay within their budgets, and hold nothing twice that has state', async () => {
  const made = await built;
  for (const kind of Object.keys(budgets) as Kind[]) {
    const { bytes, brotli } = sizes(made[kind]);
    console.log(`${made[kind].name}: ${bytes} bytes, ${brotli} after brotli (at most ${budgets[kind]})`);
    expect(brotli).toBeLessThanOrEqual(budgets[kind]);
    // The comment counts at the beginning alone.
    const atOnce = made[kind].code.startsWith('//# allFunctionsCalledOnLoad\n');
    expect(atOnce, kind).toBe(!/^(more|seldom|disk)$/.test(kind));
  }
  // Functions and constants: two copies behave as one. What is made once a page or a title belongs to one script.
  const twice = made.engine.inputs.filter((path) => made.script.inputs.includes(path));
  expect(twice.map((path) => path.replace('../core/src/', '')).sort()).toEqual([
    'browser/sleep.ts',
    'link/address.ts',
    'ports.ts',
    'schedule/input.ts',
    'schedule/segment.ts',
    'segment/index.ts',
    'segment/segment.ts',
    'segment/site.ts',
    'src/script.ts',
  ]);
  const { seldom, engine } = made;
  const node = seldom.holds.filter((path) => engine.holds.includes(path));
  expect(node.map((path) => path.replace('../core/src/', '')).sort()).toEqual([
    'certificate/certificate.ts',
    'protocol/assembly.ts',
    'protocol/limits.ts',
    'protocol/parts.ts',
    'protocol/peer.ts',
    'schedule/rank.ts',
    'segment/segment.ts',
    'transfer/segments.ts',
    'transfer/shared.ts',
  ]);
  const kept = made.disk.holds.filter((path) => engine.holds.includes(path));
  expect(kept.map((path) => path.replace('../core/src/', '')).sort()).toEqual([
    'browser/sleep.ts',
    'cache/cache.ts',
    'certificate/certificate.ts',
    'segment/segment.ts',
    'transfer/segments.ts',
    'transfer/shared.ts',
  ]);
  for (const kind of Object.keys(budgets) as Kind[]) {
    if (/^(script|engine|seldom|disk)$/.test(kind)) continue;
    const adapter = made[kind].holds.filter((path) => made.script.inputs.includes(path));
    expect(adapter, kind).toEqual([]);
  }
}, 60_000);
