/** What a request of the player waits for before there is an engine: nothing, unless a seed has been introduced (spec/schedule.md, Waiting). */
import { describe, expect, test, vi } from 'vitest';
import type { OriginResult } from './ports.ts';
import { manifest, request, setUp } from './testing/client.ts';
import { settle } from './testing/clock.ts';
import { peerA, peerB, swarm } from './testing/socket.ts';

/** A page whose player has asked for its first segment. */
const page = async () => {
  const s = setUp();
  s.leeway.start();
  const playback = s.leeway.open(manifest);
  await playback.load(request(0)).result;
  await s.clock.advance(0);
  /** Asks for a segment that could wait for long; whether the origin was asked for it in the same turn. */
  const ask = () => {
    const origin = vi.fn(request().origin);
    const load = playback.load(request(20_000, origin));
    return { origin, load, left: origin.mock.calls.length === 1 };
  };
  const introduce = (role: 'seed' | 'viewer', peer = peerA) =>
    s.tracker.last.say({ type: 'introduce', swarm, peers: [{ peer, role }] });
  return { ...s, playback, ask, introduce };
};

describe('a request leaves in the turn in which the player makes it', () => {
  test('while the tracker does not answer, however long that takes', async () => {
    const { ask, clock, tracker } = await page();
    expect(ask().left).toBe(true);
    tracker.last.handlers.open();
    await settle();
    expect(ask().left).toBe(true);
    for (let s = 0; s < 12; s++) {
      await clock.advance(1_000);
      expect(ask().left).toBe(true);
    }
  });

  test('while the tracker refuses the socket', async () => {
    const { ask, clock, tracker } = await page();
    for (let n = 0; n < 4; n++) {
      tracker.last.handlers.close();
      expect(ask().left).toBe(true);
      await clock.advance(5_000);
      expect(ask().left).toBe(true);
    }
  });

  test('with a welcome, and a join that is not answered', async () => {
    const { ask, clock, welcomed, sent } = await page();
    await welcomed();
    expect(sent('join')).toHaveLength(1);
    expect(ask().left).toBe(true);
    await clock.advance(2_000);
    expect(ask().left).toBe(true);
  });

  test('while viewers alone are introduced', async () => {
    const { ask, welcomed, joined, introduce } = await page();
    await welcomed();
    await joined();
    introduce('viewer');
    expect(ask().left).toBe(true);
  });

  test('in the control group, with a seed there', async () => {
    const { ask, welcomed, joined, introduce } = await page();
    await welcomed({ policy: { control_group: true } });
    await joined();
    introduce('seed');
    expect(ask().left).toBe(true);
  });

  test('once the session is lost', async () => {
    const { ask, welcomed, joined, introduce, tracker } = await page();
    await welcomed();
    await joined();
    introduce('seed');
    const waits = ask();
    expect(waits.left).toBe(false);
    tracker.last.handlers.close();
    await settle();
    expect(waits.origin).toHaveBeenCalledTimes(1);
    expect(ask().left).toBe(true);
  });

  test('once the tracker refuses the title to a session that comes back, though it names a seed', async () => {
    const { ask, welcomed, joined, introduce, tracker, clock, sent, leeway, loads } = await page();
    await welcomed();
    await joined();
    tracker.last.handlers.close();
    await clock.advance(10_000);
    await welcomed();
    await clock.advance(100);
    expect(sent('join')).toHaveLength(2);
    introduce('seed');
    const waits = ask();
    expect(waits.left).toBe(false);
    tracker.last.say({ type: 'error', id: sent('join')[1]!.id, code: 'bad-title', message: 'Not bound.' });
    await settle();
    expect(waits.origin).toHaveBeenCalledTimes(1);
    introduce('seed');
    expect(ask().left).toBe(true);
    expect(leeway.stats().titles).toMatchObject([{ off: 'policy' }]);
    const scripts = loads.engine;
    await clock.advance(60_000);
    expect(sent('join')).toHaveLength(2);
    expect(loads.engine).toBe(scripts);
  });

  test('once the tracker refuses the title at its first join', async () => {
    const { ask, welcomed, introduce, tracker, clock, sent, leeway, loads, engines } = await page();
    await welcomed();
    tracker.last.say({ type: 'error', id: sent('join')[0]!.id, code: 'bad-title', message: 'Not bound.' });
    await settle();
    introduce('seed');
    expect(ask().left).toBe(true);
    expect(leeway.stats().titles).toMatchObject([{ off: 'policy' }]);
    await clock.advance(60_000);
    expect([sent('join').length, loads.engine, engines.length]).toEqual([1, 0, 0]);
    expect(ask().left).toBe(true);
  });
});

describe('a request waits for a seed that was introduced', () => {
  test('until the engine is there, which has it then', async () => {
    const { ask, welcomed, joined, introduce, engines, clock } = await page();
    await welcomed();
    await joined();
    introduce('seed');
    const waits = ask();
    expect(waits.left).toBe(false);
    await clock.advance(0);
    expect(engines[0]!.loads).toHaveLength(1);
    expect(engines[0]!.seedLinking).toBe(true);
  });

  test('which has engine and links begin without the picture, unless something that the player asked for is on its way', async () => {
    const { ask, welcomed, joined, introduce, engines, clock, playback, connections, loads } = await page();
    const after = (ms: number, come: () => Promise<OriginResult>) =>
      playback.load(request(0, () => new Promise((resolve) => clock.setTimer(() => resolve(come()), ms)))).result;
    const audio = after(150, request().origin as () => Promise<OriginResult>);
    const failing = expect(after(200, () => Promise.reject(new Error('404')))).rejects.toThrow('404');
    await welcomed();
    await joined();
    introduce('seed');
    await clock.advance(100);
    ask();
    await clock.advance(50);
    await audio;
    ask();
    await clock.advance(50);
    await failing;
    expect([loads.engine, engines.length, connections.length]).toEqual([0, 0, 0]);
    ask();
    await clock.advance(0);
    expect([loads.engine, engines.length, connections.length]).toEqual([1, 1, 1]);
    expect(engines[0]!.loads).toHaveLength(3);
  });

  test('three quarters of a second in all, over all that is asked for, the engine’s time included', async () => {
    const { ask, welcomed, joined, introduce, contexts, loads, clock } = await page();
    Object.assign(loads, { failing: true, takesMs: 400 });
    await welcomed();
    await joined();
    introduce('seed');
    const waits = [ask()];
    await clock.advance(200);
    waits.push(ask());
    await clock.advance(150);
    expect(waits.map(({ origin }) => origin.mock.calls.length)).toEqual([0, 0]);
    // The engine does not come: nothing waits for it.
    await clock.advance(50);
    expect(waits.map(({ origin }) => origin.mock.calls.length)).toEqual([1, 1]);
    expect(ask().left).toBe(true);
    Object.assign(loads, { failing: false, takesMs: 0 });
    await clock.advance(10_000);
    await joined();
    expect(contexts[0]!.credit.leftMs()).toBe(350);
    contexts[0]!.credit.prove();
    expect(contexts[0]!.credit.leftMs()).toBeUndefined();
  });

  test('and not at all once that time is over', async () => {
    const { ask, clock, playback, contexts, leeway, welcomed, joined, introduce, sent, tracker } = await page();
    await welcomed();
    await joined();
    introduce('seed');
    ask();
    playback.observe({ startup_ms: 1 });
    await clock.advance(60);
    const { credit } = contexts[0]!;
    credit.waits({}, true);
    await clock.advance(2_000);
    expect(credit.leftMs()).toBe(0);
    // Another title of the same session.
    const second = leeway.open('https://video.example.com/other/master.m3u8');
    await settle();
    const other = peerB;
    tracker.last.say({ type: 'joined', id: sent('join').at(-1)!.id, swarm: other, viewers: 2, seeds: 1 });
    tracker.last.say({ type: 'introduce', swarm: other, peers: [{ peer: peerA, role: 'seed' }] });
    const origin = vi.fn(request().origin);
    second.load({ ...request(20_000, origin), url: 'https://video.example.com/other/1.ts' });
    expect(origin).toHaveBeenCalledTimes(1);
  });

  test('no longer than what the player has in hand allows', async () => {
    const { welcomed, joined, introduce, playback, clock, loads } = await page();
    loads.takesMs = 1_000;
    await welcomed();
    await joined();
    introduce('seed');
    const origin = vi.fn(request().origin);
    // A second of it, and three times the 0.1 s that the origin takes, are the window in which nothing waits.
    playback.load(request(1_500, origin));
    await clock.advance(199);
    expect(origin).not.toHaveBeenCalled();
    await clock.advance(1);
    expect(origin).toHaveBeenCalledTimes(1);
  });
});
