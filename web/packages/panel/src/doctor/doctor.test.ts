import { readdirSync, readFileSync } from 'node:fs';
import type { Leeway, LeewayState, Notice, TitleSnapshot } from '@leeway/core';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { FakeClock } from '../../../core/src/testing/clock.ts';
import { checkPlayer } from './browser.ts';
import type { Examination, Greeting } from './examination.ts';
import type { Found } from './finding.ts';
import { begun, fixes } from './fixes.ts';
import { checkLinks, checkPiece, checkSeed, checkSigned, checkSite } from './titles.ts';
import { checkClock, checkWelcome } from './tracker.ts';

it('fixes are in the words of leeway doctor', () => {
  const folder = new URL('../../../../../internal/doctor/', import.meta.url);
  const source = readdirSync(folder)
    .filter((name) => name.endsWith('.go'))
    .map((name) => readFileSync(new URL(name, folder), 'utf8').replaceAll('\\"', '"'))
    .join('\n');
  for (const [code, fix] of Object.entries({ ...fixes, ...begun })) expect(source, code).toContain(fix);
});

const figures = { origin: 0, seed: 0, peer: 0, peer_relay: 0, seed_relay: 0 };

function title(with_: object): TitleSnapshot {
  return {
    manifest: 'https://media.example/film/a.m3u8',
    title: '/film',
    swarm: 'ab',
    viewers: 2,
    seeds: 1,
    links: { open: 0, opening: 0 },
    linkFailures: {},
    off: null,
    totals: { bytes: figures, reasons: {} },
    ...with_,
  } as unknown as TitleSnapshot;
}

const greeting = (role: string): Greeting => ({
  server_time_ms: 0,
  site: { name: 'demo', hosts: ['media.example'] },
  ice_servers: [],
  verify_keys: [],
  policy: { role },
});

/** What a check finds while the library says this of its titles, for as long as it waits. */
async function found(
  check: (e: Examination) => Promise<Found | Found[]>,
  titles: TitleSnapshot[],
  more: { role?: string; notice?: Notice; ahead?: number; later?: (clock: FakeClock) => void } = {},
) {
  const clock = new FakeClock();
  const leeway = { clock, stats: () => ({ titles, notice: more.notice ?? null }) } as unknown as Leeway;
  const e = { leeway, options: { tracker: 'wss://t.example' }, greeting: greeting(more.role ?? 'full') };
  const finding = check(e);
  more.later?.(clock);
  await clock.advance(10_000);
  return [await finding].flat().map(({ status, code, text, fix }) => ({ status, code, text, fix }));
}

describe('of the films on the page', () => {
  it('a manifest that is the site’s, another host’s, and one that is switched off', async () => {
    expect(await found(checkSite, [title({})])).toMatchObject([{ status: 'ok' }]);
    const foreign = title({ manifest: 'https://other.example/a.m3u8', swarm: undefined, off: 'policy' });
    expect(await found(checkSite, [foreign])).toMatchObject([
      { code: 'foreign-manifest', fix: 'add it to the site: hosts: ["other.example"]; hosts serve the same paths' },
    ]);
    expect(await found(checkSite, [title({})], { role: 'off' })).toMatchObject([{ code: 'site-off' }]);
    const notice: Notice = { code: 'needs-token', message: 'No token.', hint: 'Pass data-token.' };
    expect(await found(checkSite, [title({ off: 'needs-token' })], { notice })).toMatchObject([
      { status: 'error', code: 'needs-token', text: 'No token.', fix: 'Pass data-token.' },
    ]);
    expect(await found(checkSite, [title({ off: 'control-group' })])).toMatchObject([{ status: 'warning' }]);
    expect(await found(checkSite, [])).toMatchObject([{ status: 'skipped' }]);
  });

  it('no seed, no link, and why the browser says so', async () => {
    expect(await found(checkSeed, [title({ seeds: 0 })])).toMatchObject([{ code: 'no-seed', fix: fixes['no-seed'] }]);
    expect(await found(checkLinks, [title({ linkFailures: { timeout: 2 } })])).toMatchObject([
      { code: 'link-none', text: expect.stringContaining('timeout 2'), fix: fixes['link-none'] },
    ]);
    expect(await found(checkLinks, [title({ linkFailures: { 'udp-blocked': 1 } })])).toMatchObject([
      { code: 'link-none', fix: expect.stringContaining('TURN') },
    ]);
    expect(await found(checkLinks, [title({ links: { open: 1, opening: 0 } })])).toMatchObject([{ status: 'ok' }]);
  });

  it('no seed, of which the control group hears of none', async () => {
    expect(await found(checkSeed, [title({ seeds: 0, off: 'control-group' })])).toMatchObject([{ status: 'skipped' }]);
  });

  it('a seed that was not there when the title was joined, and comes while it is waited for', async () => {
    const late = title({ seeds: 0 });
    const comes = () => {
      late.engine = { peers: [{ role: 'viewer' }, { role: 'seed' }] } as typeof late.engine;
    };
    expect(await found(checkSeed, [late], { later: (clock) => clock.setTimer(comes, 500) })).toMatchObject([
      { status: 'ok', text: '1 seed introduced' },
    ]);
  });

  it('other viewers that are linked by a relay alone', async () => {
    const of = (...peers: string[]) =>
      title({
        links: { open: peers.length, opening: 0 },
        engine: { peers: peers.map((p) => ({ role: p.split(' ')[0], path: p.split(' ')[1] })) },
      });
    expect(await found(checkLinks, [of('seed direct', 'viewer relay')])).toMatchObject([
      { status: 'warning', code: 'links-relayed', fix: expect.stringContaining('policy.local') },
    ]);
    for (const [text, peers] of Object.entries({
      '2 open': ['seed direct', 'viewer direct'],
      '3 open, 1 of them by a relay': ['seed direct', 'viewer direct', 'viewer relay'],
      '1 open, 1 of them by a relay': ['seed relay'],
    }))
      expect(await found(checkLinks, [of(...peers)])).toMatchObject([{ status: 'ok', text }]);
  });

  it('names of one viewer', async () => {
    const totals = { bytes: figures, reasons: {}, unlisted_query: { sig: 3, exp: 3 } };
    expect(await found(checkSigned, [title({ totals })])).toMatchObject([
      { code: 'signed-urls', fix: 'add to the site: key: {ignore_query: [sig, exp]} (docs/operations/signed-urls.md)' },
    ]);
  });

  it('a piece comes while it is waited for, none comes, and none was asked for', async () => {
    const links = { open: 1, opening: 0 };
    const late = title({ links, totals: { bytes: figures, reasons: {} } });
    const comes = () => {
      late.totals.bytes = { ...figures, peer: 5 };
    };
    expect(await found(checkPiece, [late], { later: (clock) => clock.setTimer(comes, 500) })).toMatchObject([
      { status: 'ok', text: 'verified: 5 bytes of viewers, 0 of seeds' },
    ]);
    const asks = title({ links, totals: { bytes: { ...figures }, reasons: { 'no-cert': 3 } } });
    const asked = () => {
      asks.totals.bytes = { ...figures, origin: 9 };
    };
    expect(await found(checkPiece, [asks], { later: (clock) => clock.setTimer(asked, 500) })).toMatchObject([
      { code: 'piece-none', text: expect.stringContaining('no-cert') },
    ]);
    expect(await found(checkPiece, [title({ links })])).toMatchObject([{ status: 'skipped' }]);
  });

  it('several are told apart', async () => {
    const all = await found(checkSeed, [title({}), title({ title: '/other', seeds: 0 })]);
    expect(all.map(({ status, text }) => [status, text.split(':')[0]])).toEqual([
      ['ok', '/film'],
      ['error', '/other'],
    ]);
  });
});

it('no player is missed where peer delivery is off: none is looked for', () => {
  vi.stubGlobal('window', { MediaSource: class {}, Hls: class {} });
  const found = (state: LeewayState) => {
    const leeway = { state, stats: () => ({ titles: [] }) };
    return checkPlayer({ leeway, options: { hooks: [{ found: false }] } } as unknown as Examination).code;
  };
  expect(['ready', 'off', 'stopped'].map((state) => found(state as LeewayState))).toEqual([
    'no-player',
    'skipped',
    'skipped',
  ]);
});

it.each([
  [1_000, 'ok'],
  [-20_000, 'warning'],
  [90_000, 'error'],
])('a tracker whose clock is %d ms ahead is %s', (ahead, status) =>
  expect(checkClock({ ahead } as Examination).status).toBe(status));

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** Says hello with a token to a tracker that wants one. */
function greeted(token: () => Promise<string>) {
  const socket = {
    onmessage: (_: { data: string }) => {},
    close: () => {},
    send: (hello: string) => {
      const answer = JSON.parse(hello).token
        ? { type: 'welcome', ...greeting('full'), server_time_ms: Date.now() }
        : { type: 'error', code: 'token-required', message: 'A token is needed.', hint: 'Give one.' };
      socket.onmessage({ data: JSON.stringify(answer) });
    },
  };
  const e = { socket, options: { tracker: 'wss://t.example', token } } as unknown as Examination;
  return { e, found: checkWelcome(e) };
}

it('the time that a token takes is none of the tracker’s', async () => {
  vi.useFakeTimers({ now: 1_000_000 });
  const { e, found } = greeted(async () => {
    vi.advanceTimersByTime(30_000);
    return 'token';
  });
  expect([(await found).status, e.ahead]).toEqual(['warning', 0]);
});

it.each<[string, () => Promise<string>]>([
  ['fails', () => Promise.reject(new Error('401'))],
  ['does not come', () => new Promise(() => {})],
])('a token that %s is the page’s matter', async (_, token) => {
  vi.useFakeTimers();
  const { found } = greeted(token);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await found).toMatchObject({ code: 'token-required', fix: expect.stringContaining('join token') });
});
