import type { Leeway } from '@leeway/core';
import { describe, expect, test, vi } from 'vitest';
import type { DashNamespace } from '../../dashjs/src/dashjs.ts';
import type { ShakaNamespace } from '../../shaka/src/shaka.ts';
import { type Hook, hook } from './hook.ts';
import type { Attach } from './load.ts';
import { type Load, players } from './players.ts';
import { readTag } from './tag.ts';

type Scope = Record<string, unknown>;

/** As the drop-in does it. */
const find = (name: string, leeway: Leeway, scope: Scope, load: Load): Hook =>
  hook(leeway, scope, name, (value) => players[name]!(leeway, value, load));
const hookHls = (leeway: Leeway, scope: Scope) =>
  find('Hls', leeway, scope, () => Promise.reject(new Error('hls.js has no part')));

function setUp() {
  const opened: string[] = [];
  const leeway = {
    clock: { now: () => 0, setTimer: () => 0, clearTimer: () => {} },
    open: (manifest: string) => {
      opened.push(manifest);
      return { manifest, close() {}, observe() {}, setPaused() {} };
    },
    caught: (where: string, error: unknown) => {
      throw new Error(`${where}: ${error}`);
    },
  } as unknown as Leeway;
  class Hls {
    config = {};
    levels = [];
    url = '';
    on() {}
    off() {}
    trigger() {
      return true;
    }
    loadSource(url: string) {
      this.url = url;
      this.trigger();
    }
  }
  return { leeway, opened, Hls };
}

describe('finding hls.js', () => {
  test('that was loaded before', () => {
    const { leeway, opened, Hls } = setUp();
    const scope: Record<string, unknown> = { Hls };
    const hook = hookHls(leeway, scope);
    expect(hook.found).toBe(true);
    new Hls().loadSource('a');
    expect(opened).toEqual(['a']);
    hook.undo();
    expect(Object.getOwnPropertyDescriptor(scope, 'Hls')).toMatchObject({ value: Hls, writable: true });
  });

  test('that is loaded after, once or again', () => {
    const { leeway, opened, Hls } = setUp();
    const other = setUp();
    const scope: Record<string, unknown> = {};
    const hook = hookHls(leeway, scope);
    expect(hook.found).toBe(false);
    expect('Hls' in scope && scope.Hls).toBe(undefined);
    scope.Hls = Hls;
    scope.Hls = other.Hls;
    scope.Hls = Hls;
    new Hls().loadSource('a');
    new other.Hls().loadSource('b');
    expect(opened).toEqual(['a', 'b']);
    expect(scope.Hls).toBe(Hls);
    hook.undo();
    new Hls().loadSource('c');
    expect(opened).toEqual(['a', 'b']);
  });

  test('that cannot be taken is a defect of ours, whether it was loaded before or after', () => {
    const { leeway } = setUp();
    const caught = vi.fn();
    leeway.caught = caught;
    const scope: Record<string, unknown> = { Hls: 1 };
    const found = hook(leeway, scope, 'Hls', (value) => {
      throw value;
    });
    scope.Hls = 2;
    expect([caught.mock.calls, scope.Hls, found.found]).toEqual([
      [
        ['hook', 1],
        ['hook', 2],
      ],
      2,
      false,
    ]);
  });

  test('that never comes leaves no trace', () => {
    const { leeway } = setUp();
    const scope: Record<string, unknown> = {};
    hookHls(leeway, scope).undo();
    expect('Hls' in scope).toBe(false);
  });
});

type AttachShaka = Attach<ShakaNamespace>;

describe('finding Shaka, whose adapter is a part', () => {
  const hookShaka = (leeway: Leeway, scope: Scope, load: Load) => find('shaka', leeway, scope, load);

  /** The adapter's script, which comes when the test says. */
  function script() {
    const { leeway } = setUp();
    const notice = vi.fn();
    leeway.notice = notice;
    const detach = vi.fn();
    const attach = vi.fn<AttachShaka>(() => detach);
    let come!: (attach: AttachShaka) => void;
    let fail!: (error: Error) => void;
    const load = vi.fn<Load>(
      () =>
        new Promise((resolve, reject) => {
          come = resolve;
          fail = reject;
        }),
    );
    const settle = () => new Promise(setImmediate);
    return { leeway, notice, attach, detach, load, come: () => come(attach), fail: () => fail(new Error('x')), settle };
  }
  const shaka = { Player: class {} };

  test('asks for its adapter where a page has that player, and only there', async () => {
    const { leeway, attach, detach, load, come, settle } = script();
    const scope: Record<string, unknown> = {};
    const hook = hookShaka(leeway, scope, load);
    scope.shaka = { log: {} }; // settings that a page keeps for it
    expect(load).not.toHaveBeenCalled();
    scope.shaka = shaka;
    scope.shaka = shaka;
    // Not among the player's own calls: its script runs.
    expect(load).not.toHaveBeenCalled();
    await settle();
    expect(load.mock.calls).toEqual([['shaka']]);
    expect(hook.found).toBe(true);
    come();
    await settle();
    expect(attach.mock.calls).toEqual([[leeway, shaka]]);
    hook.undo();
    expect(detach).toHaveBeenCalledOnce();
    expect(Object.getOwnPropertyDescriptor(scope, 'shaka')).toMatchObject({ value: shaka, writable: true });
  });

  test('an adapter that comes after the end is not used', async () => {
    const { leeway, attach, load, come, settle } = script();
    const hook = hookShaka(leeway, { shaka }, load);
    await settle();
    hook.undo();
    come();
    await settle();
    expect(attach).not.toHaveBeenCalled();
  });

  test('an adapter that does not come, or does not take the player, is told', async () => {
    for (const missing of [true, false]) {
      const { leeway, notice, attach, load, come, fail, settle } = script();
      attach.mockImplementation(() => {
        throw new TypeError('no Shaka 5');
      });
      hookShaka(leeway, { shaka }, load);
      await settle();
      if (missing) fail();
      else come();
      await settle();
      expect(notice.mock.calls).toMatchObject([
        [{ code: 'engine-missing', message: expect.stringContaining('for shaka') }],
      ]);
    }
  });
});

test('dash.js behind the tag is met before a player is made: it puts its namespace on the page empty, and again when it is whole', async () => {
  const { leeway } = setUp();
  const load = vi.fn<Load>(() => new Promise(() => {}));
  const scope: Record<string, unknown> = {};
  const hook = find('dashjs', leeway, scope, load);
  const dashjs: Record<string, unknown> = {};
  scope.dashjs = dashjs;
  await new Promise(setImmediate);
  expect([load.mock.calls, hook.found]).toEqual([[], false]);
  const extend = vi.fn();
  dashjs.MediaPlayer = () => ({ create: () => ({ extend, initialize() {} }) });
  scope.dashjs = dashjs;
  await new Promise(setImmediate);
  expect([load.mock.calls, hook.found]).toEqual([[['dashjs']], true]);
  (scope.dashjs as DashNamespace).MediaPlayer().create().initialize();
  expect(extend.mock.calls.map(([loader]) => loader)).toEqual(['XHRLoader', 'FetchLoader']);
});

test('dash.js whose namespace is that of a module is none that can be attached', () => {
  const { leeway } = setUp();
  const MediaPlayer = () => ({ create: () => ({ extend() {} }) });
  const scope = { dashjs: Object.freeze({ MediaPlayer }) };
  const hook = find('dashjs', leeway, scope, () => Promise.reject(new Error('not asked for')));
  expect([hook.found, scope.dashjs.MediaPlayer]).toEqual([false, MediaPlayer]);
});

test.each(['the end', 'a failure'])('%s before the adapter is there leaves dash.js as it was', async (what) => {
  const { leeway } = setUp();
  leeway.notice = () => {};
  const failed = Promise.reject(new Error('blocked'));
  failed.catch(() => {});
  const load = () => (what === 'a failure' ? failed : new Promise(() => {}));
  const MediaPlayer = () => ({ create: () => ({ extend() {} }) });
  const scope = { dashjs: { MediaPlayer } };
  const hook = find('dashjs', leeway, scope, load);
  expect(scope.dashjs.MediaPlayer).not.toBe(MediaPlayer);
  await new Promise(setImmediate);
  if (what === 'the end') hook.undo();
  expect(scope.dashjs.MediaPlayer).toBe(MediaPlayer);
});

describe('the script tag', () => {
  test('is read', () => {
    const data = { tracker: ' wss://t ', site: 'demo', title: 'x', token: 'j', consent: 'required', debug: '' };
    expect(readTag(data, 'https://cdn/leeway.js')).toEqual({
      tracker: 'wss://t',
      site: 'demo',
      title: 'x',
      token: expect.any(Function),
      consent: 'required',
      prefetch: true,
      disk: true,
      debug: true,
    });
  });

  test('has its token read anew each time', () => {
    const data: Record<string, string> = { token: ' j ' };
    const { token } = readTag(data, '');
    expect(token!()).toBe('j');
    data.token = 'k';
    expect(token!()).toBe('k');
    delete data.token;
    expect(token!()).toBe('');
    expect(readTag({}, '').token).toBeUndefined();
  });

  test('without a tracker means the host that served the script', () => {
    expect(readTag({}, 'https://t.example.com/leeway.js')).toMatchObject({
      tracker: 'https://t.example.com',
      consent: 'given',
      debug: false,
    });
    expect(readTag({}, '').tracker).toBe('');
    expect(readTag({ prefetch: 'off' }, '').prefetch).toBe(false);
    expect(readTag({ disk: 'off' }, '').disk).toBe(false);
  });

  test.each([
    [undefined, undefined],
    ['', ''],
    ['left', 'left'],
  ])('with data-badge %j has the badge %j, and the switch of its viewer', (value, badge) => {
    vi.stubGlobal('localStorage', { leeway: 'off' });
    expect(readTag({ badge: value }, '')).toMatchObject({ badge, consent: badge === undefined ? 'given' : 'required' });
    vi.stubGlobal('localStorage', {});
    expect(readTag({ badge: value }, '').consent).toBe('given');
    vi.unstubAllGlobals();
    expect(readTag({ badge: value }, '').consent).toBe('given');
  });
});
