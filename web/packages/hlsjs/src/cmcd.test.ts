/** CMCD of hls.js under Leeway: its own controller and reporter write the keys, here as in a player. */

import { readFileSync } from 'node:fs';
import Hls from 'hls.js';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { FragmentContext, HlsLike, LoaderConstructor } from './hls.ts';
import { wrapLoader } from './loader.ts';
import { FakeHls, FakeMedia, FakePlayback, PreviousLoader, settle, TestClock } from './testing.ts';

const url = 'https://cdn/5.ts';

/** What goes out: the page's loader, without anything of its own written into the request. */
class Sent extends PreviousLoader {
  override load(...[context, , callbacks]: Parameters<PreviousLoader['load']>): void {
    Object.assign(this, { context, callbacks });
  }
}

/** A player with what its controller asks for. */
class Player extends FakeHls {
  logger = { warn: vi.fn() };
  sessionId = 'one';
  maxAutoLevel = 1;
  bandwidthEstimate = 5_000_000;
  override on(event: string, f: (event: string, data: never) => void, context?: unknown): void {
    super.on(event, f.bind(context));
  }
}

type Reporter = Parameters<NonNullable<NonNullable<Hls['config']['cmcd']>['reporterCallback']>>[0];

function setUp(cmcd: object) {
  let reporter: Reporter | undefined;
  const events: { headers?: Record<string, string>; body?: unknown }[] = [];
  const hls = new Player();
  const config = {
    loader: Sent,
    cmcd: {
      version: 2,
      contentId: 'film',
      reporterCallback: (own: Reporter) => {
        reporter = own;
      },
      loader: async (request: (typeof events)[number]) => {
        events.push(request);
        return { status: 204 };
      },
      ...cmcd,
    },
  };
  hls.config = config as unknown as HlsLike['config'];
  const Controller = Hls.DefaultConfig.cmcdController!;
  new Controller(hls as unknown as Hls);
  hls.loadSource('https://cdn/master.m3u8');
  const playback = new FakePlayback();
  const { fLoader } = hls.config as { fLoader?: LoaderConstructor };
  const context = { hls: hls as unknown as HlsLike, clock: new TestClock(), playback: () => playback, caught: vi.fn() };
  const loader = new (wrapLoader(fLoader!, context))(hls.config);
  const frag = { sn: 5, start: 20, duration: 4, level: 1, type: 'main', url };
  const own: FragmentContext = { frag, part: null, url, headers: { 'x-own': '1' } };
  const callbacks = { onSuccess: vi.fn(), onError: vi.fn(), onTimeout: vi.fn(), onAbort: vi.fn() };
  loader.load(own, {}, callbacks);
  return { hls, playback, own, events, reporter: reporter!, callbacks };
}

/** Reports as hls.js writes them; trackers read the same text (spec/cmcd.md). */
const vector = (name: string): string => {
  const text = readFileSync(new URL('../../../../spec/vectors/cmcd.json', import.meta.url), 'utf8');
  const { reports } = JSON.parse(text) as { reports: { name: string; report: string }[] };
  return reports.find((one) => one.name === `hls.js 1.7: ${name}`)!.report;
};

const cmcdOf = (context: FragmentContext | null) => new URL(context!.url).searchParams.get('CMCD');
const sent = () => PreviousLoader.made.at(-1)!;
const signal = () => new AbortController().signal;

beforeEach(() => {
  PreviousLoader.made = [];
  vi.stubGlobal('self', globalThis);
  vi.stubGlobal('performance', { timeOrigin: 1_790_000_000_000 - 100, now: () => 100 });
  vi.useFakeTimers({ toFake: ['Date'], now: 1_790_000_000_000 });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe('CMCD of hls.js', () => {
  test('is in the query of what the origin is asked for, and in no name', () => {
    const { hls, playback, own } = setUp({ useHeaders: false });
    expect(playback.request!.url).toBe(url);
    expect(PreviousLoader.made.filter(({ context }) => context)).toEqual([]);
    playback.request!.origin(signal(), () => {}, { first: 0, last: 99 }).catch(() => {});
    expect(cmcdOf(sent().context)).toMatch(/br=\(1500\).*cid="film".*sid="one".*v=2/);
    expect(sent().context).toMatchObject({ headers: { 'x-own': '1' }, rangeStart: 0, rangeEnd: 100 });
    playback.request!.beside!('https://cdn/v.m3u8.leeway', signal(), () => {}).catch(() => {});
    expect(cmcdOf(sent().context)).toContain('sid="one"');
    expect(own).toMatchObject({ url, headers: { 'x-own': '1' } });
    expect(hls.logger.warn).not.toHaveBeenCalled();
  });

  test('is in the headers of what the origin is asked for, beside those of the page', () => {
    const { playback, own } = setUp({ useHeaders: true });
    playback.request!.origin(signal(), () => {}).catch(() => {});
    const { headers, url: asked } = sent().context!;
    expect(Object.keys(headers!).sort()).toEqual([
      'CMCD-Object',
      'CMCD-Request',
      'CMCD-Session',
      'CMCD-Status',
      'x-own',
    ]);
    expect([headers!['CMCD-Object'], headers!['CMCD-Session']]).toEqual([
      expect.stringContaining('br=(1500)'),
      expect.stringContaining('sid="one"'),
    ]);
    expect(asked).toBe(url);
    // The next fetch begins with the page's own headers, not with those of the last one.
    expect(own.headers).toEqual({ 'x-own': '1' });
  });

  test.each([
    ['query', false],
    ['headers', true],
  ])('in %s takes keys of the page, so a CDN can add up what it did not send', (_mode, useHeaders) => {
    const { playback, reporter } = setUp({ useHeaders, includeKeys: ['sid', 'com.leeway-p', 'com.leeway-s'] });
    reporter.updateCustomData({ 'com.leeway-p': 1200, 'com.leeway-s': 34 });
    playback.request!.origin(signal(), () => {}).catch(() => {});
    const { headers } = sent().context!;
    const told = useHeaders ? headers!['CMCD-Request'] : cmcdOf(sent().context);
    expect(told).toContain('com.leeway-p=1200,com.leeway-s=34');
    // No header that a browser has not asked the origin for before.
    const names = Object.keys(headers!).filter((name) => name !== 'x-own');
    expect(names.sort()).toEqual(useHeaders ? ['CMCD-Request', 'CMCD-Session'] : []);
  });

  test('reports responses of the origin, and no segment of a peer', async () => {
    const target = { url: 'https://collector/', events: ['rr'], includeKeys: ['sid', 'url', 'rc'], batchSize: 1 };
    const { playback, callbacks, events } = setUp({ eventTargets: [target] });
    playback.fromOrigin();
    sent().succeed(1_000);
    await settle();
    expect(callbacks.onSuccess).toHaveBeenCalledOnce();
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({ headers: { 'Content-Type': 'application/cmcd' } });
    expect(events[0]!.body).toBe(vector('a response'));
    const { playback: other, callbacks: told, events: none } = setUp({ eventTargets: [target] });
    other.resolve({ data: new ArrayBuffer(9), source: 'peer', bytes: { origin: 0, seed: 0, peer: 9 } });
    await settle();
    expect([told.onSuccess.mock.calls.length, none.length]).toEqual([1, 0]);
  });

  test('reports states of the player, and keys of the page', async () => {
    const includeKeys = ['cid', 'sid', 'sn', 'sta', 'com.leeway-p'];
    const target = { url: 'https://collector/', events: ['ps'], includeKeys, batchSize: 4 };
    const { hls, reporter, events } = setUp({ eventTargets: [target] });
    const media = new FakeMedia();
    hls.trigger('hlsMediaAttaching', { media });
    media.fire('playing');
    reporter.updateCustomData({ 'com.leeway-p': 1200 });
    media.fire('waiting', 'playing');
    await settle();
    expect(events.map(({ body }) => body)).toEqual([vector('states')]);
  });
});
