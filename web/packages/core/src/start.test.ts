import { describe, expect, test } from 'vitest';
import { manifest, request, setUp } from './testing/client.ts';
import { settle } from './testing/clock.ts';
import { peerA, peerB, swarm } from './testing/socket.ts';

describe('the engine, in a file of its own', () => {
  test('comes with the first picture, once for all titles', async () => {
    const { leeway, clock, loads, engines, sent, welcomed, joined } = setUp();
    leeway.start();
    const first = leeway.open(manifest);
    await clock.advance(500);
    first.load(request(0)).result.catch(() => {});
    await clock.advance(0);
    await welcomed();
    // The peers that are there may be told already.
    expect([loads.engine, sent('join').length]).toEqual([0, 1]);
    first.observe({ startup_ms: 700 });
    expect(loads.engine).toBe(0);
    await joined();
    await clock.advance(49);
    expect([loads.engine, engines.length]).toEqual([0, 0]);
    await clock.advance(1);
    expect([loads.engine, engines.length]).toEqual([1, 1]);
    leeway.open('https://video.example.com/other/master.m3u8');
    await clock.advance(2_000);
    expect(sent('join').length).toBe(2);
    leeway.stop();
  });

  test('comes with a session that opens after the picture, and not before', async () => {
    const { leeway, clock, loads, sent, welcomed } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    playback.load(request(0)).result.catch(() => {});
    await clock.advance(0);
    playback.observe({ startup_ms: 10 });
    await clock.advance(6_000);
    expect(loads.engine).toBe(0);
    await welcomed();
    await clock.advance(0);
    // The join goes out as soon as its offers are made.
    expect([loads.engine, sent('join').length]).toEqual([1, 1]);
    expect(sent('join')).toMatchObject([{ offers: [{ early: true }, { early: true }] }]);
    leeway.stop();
  });

  test('takes nothing of the first segment’s line for a session that may never open', async () => {
    const { leeway, clock, loads, welcomed } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    playback.load(request(0)).result.catch(() => {});
    await clock.advance(6_000);
    expect(loads.engine).toBe(0);
    await welcomed();
    expect(loads.engine).toBe(1);
    leeway.stop();
  });

  test('and links wait for the picture; the peers that the tracker names meanwhile are offered to then', async () => {
    const { leeway, clock, tracker, sent, welcomed, joined, connections, engines } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    playback.load(request(0)).result.catch(() => {});
    await clock.advance(0);
    await welcomed();
    await joined();
    tracker.last.say({ type: 'introduce', swarm, peers: [{ peer: peerA, role: 'viewer' }] });
    const offer = { kind: 'offer', sdp: 'v=0', plan: { v: 1, data: 2, message: 16_384 } };
    tracker.last.say({ type: 'signal', swarm, from: peerB, role: 'viewer', link: peerB, ...offer });
    await clock.advance(900);
    expect([connections.length, engines.length]).toEqual([0, 0]);
    playback.observe({ startup_ms: 900 });
    await clock.advance(49);
    expect(connections).toHaveLength(0);
    await clock.advance(60);
    expect([connections.length, engines.length]).toEqual([2, 1]);
    expect(sent('signal').map(({ kind }) => kind)).toContain('offer');
    leeway.stop();
  });

  /** A page that plays segments of 500 kB and 4 s over a line of so many bytes a ms. */
  const over = async (rate: number, live?: boolean) => {
    const page = setUp();
    const { leeway, clock, welcomed, joined } = page;
    leeway.start();
    const playback = leeway.open(manifest);
    await clock.advance(0);
    await welcomed();
    await joined();
    /** Has the next segment come, with so much in hand as it is asked for. */
    const get = async (hand: number, bytes = 500_000) => {
      const transferMs = bytes / rate;
      const answer = { data: new ArrayBuffer(bytes), status: 200, url: 'x', transferMs };
      const origin = () => new Promise<typeof answer>((resolve) => clock.setTimer(() => resolve(answer), transferMs));
      const { result } = playback.load({ ...request(hand, origin), live });
      await clock.advance(transferMs);
      await result;
    };
    await get(0, 100_000);
    return { ...page, playback, get };
  };

  test('comes a second after there is something in hand, where no picture follows', async () => {
    const { clock, engines, leeway, get } = await over(5_000);
    await get(4_000);
    await clock.advance(849);
    expect(engines).toHaveLength(0);
    await clock.advance(1);
    expect(engines).toHaveLength(1);
    leeway.stop();
  });

  test('and links come once 10 s are in hand, over a line that fills the buffer slowly', async () => {
    const { clock, connections, engines, leeway, loads, playback, get, tracker } = await over(200);
    tracker.last.say({ type: 'introduce', swarm, peers: [{ peer: peerA, role: 'viewer' }] });
    await get(1_000);
    playback.observe({ startup_ms: 3_000 });
    for (const hand of [2_500, 4_000, 5_500, 7_000, 8_500, 9_900]) await get(hand);
    expect([loads.engine, engines.length, connections.length]).toEqual([0, 0, 0]);
    const last = get(10_100);
    await clock.advance(50);
    expect([loads.engine, engines.length, connections.length]).toEqual([1, 1, 1]);
    await last;
    // Others may have what it fetched until then.
    expect(engines[0]!.adopted).toHaveLength(9);
    leeway.stop();
  });

  test('or with the picture, at a live stream, which has nothing to fill a buffer with', async () => {
    const { clock, engines, leeway, playback, get } = await over(200, true);
    await get(4_000);
    playback.observe({ startup_ms: 500 });
    await clock.advance(50);
    expect(engines).toHaveLength(1);
    leeway.stop();
  });

  test('or 30 s after the manifest', async () => {
    const { clock, engines, leeway, playback, get } = await over(200);
    playback.observe({ startup_ms: 500 });
    for (let n = 0; n < 11; n++) await get(6_000);
    await clock.advance(1_949);
    expect(engines).toHaveLength(0);
    await clock.advance(1);
    expect(engines).toHaveLength(1);
    leeway.stop();
  });

  test('or with the picture, over a line that is too slow for what is played', async () => {
    const { clock, engines, leeway, playback, get } = await over(100);
    const second = get(4_000);
    playback.observe({ startup_ms: 1_000 });
    await clock.advance(50);
    expect(engines).toHaveLength(1);
    await second;
    leeway.stop();
  });

  test('or a second after the player asks again for what the origin failed to send, and not when the player takes its request back', async () => {
    const { clock, engines, leeway, welcomed, joined } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    await clock.advance(0);
    await welcomed();
    await joined();
    const taken = playback.load(
      request(0, (signal) => new Promise((_, no) => signal.addEventListener('abort', () => no(new Error('aborted'))))),
    );
    taken.abort();
    await expect(taken.result).rejects.toThrow('aborted');
    await clock.advance(1_000);
    expect(engines).toHaveLength(0);
    const down = () => playback.load(request(0, () => Promise.reject(new Error('503')))).result;
    await expect(down()).rejects.toThrow('503');
    await expect(down()).rejects.toThrow('503');
    await clock.advance(950);
    expect(engines).toHaveLength(1);
    leeway.stop();
  });

  test('waits for the picture also where the session was lost before', async () => {
    const { clock, connections, engines, leeway, sent, tracker, welcomed, joined } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    playback.load(request(0)).result.catch(() => {});
    await clock.advance(0);
    await welcomed();
    await joined();
    tracker.last.say({ type: 'reconnect', after_ms: 0 });
    await clock.advance(2_000);
    await welcomed({ resumed: true });
    await joined();
    tracker.last.say({ type: 'introduce', swarm, peers: [{ peer: peerA, role: 'viewer' }] });
    await clock.advance(1_000);
    expect([sent('join').length, engines.length, connections.length]).toEqual([2, 0, 0]);
    playback.observe({ startup_ms: 3_000 });
    await clock.advance(50);
    expect([sent('join').length, engines.length, connections.length]).toEqual([2, 1, 1]);
    leeway.stop();
  });

  test('leaves the origin to serve where it does not come, and is asked for again', async () => {
    const { leeway, clock, loads, engines, sent, codes, enter, joined } = setUp();
    loads.failing = true;
    leeway.start();
    const playback = leeway.open(manifest);
    await enter();
    expect(codes()).toEqual(['engine-missing']);
    expect(sent('join')).toEqual([]);
    expect(playback.active).toBe(false);
    await expect(playback.load(request()).result).resolves.toMatchObject({ source: 'origin', reason: 'policy' });
    await clock.advance(25_000);
    expect(loads.engine).toBe(2);
    loads.failing = false;
    await clock.advance(10_000);
    await joined();
    expect([loads.engine, engines.length, codes().length]).toEqual([3, 1, 1]);
    expect(engines[0]!.off).toBe(null);
    expect(leeway.stats().titles[0]!.off).toBe(null);
    leeway.stop();
    await clock.advance(100_000);
    expect(loads.engine).toBe(3);
  });

  test('is given what came before it, and what comes without it is not kept where it is not coming', async () => {
    const { leeway, engines, enter, joined, clock } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    for (let i = 0; i < 10; i++) await playback.load(request(0)).result;
    await enter();
    await joined();
    expect(engines[0]!.adopted).toEqual(Array.from({ length: 8 }, () => ['https://video.example.com/film/1.ts', 100]));
    leeway.stop();

    const strict = setUp();
    strict.leeway.start();
    const secret = {
      ...request(0),
      origin: async () => ({ data: new ArrayBuffer(9), status: 200, url: 'x', unshared: true }),
    };
    await strict.leeway.open(manifest).load(secret).result;
    await strict.enter();
    await strict.joined();
    expect(strict.engines[0]!.adopted).toEqual([]);
    strict.leeway.stop();

    const off = setUp();
    off.leeway.start();
    const other = off.leeway.open(manifest);
    await other.load(request(0)).result;
    await off.enter({ policy: { role: 'off' } });
    await off.joined();
    expect(off.engines.flatMap(({ adopted }) => adopted)).toEqual([]);
    await clock.advance(0);
  });

  test('is not waited for by a page that has stopped', async () => {
    const { leeway, clock, loads, sent, enter } = setUp();
    loads.failing = true;
    leeway.start();
    leeway.open(manifest);
    await enter();
    leeway.stop();
    await clock.advance(60_000);
    expect([loads.engine, sent('join').length]).toEqual([1, 0]);
  });
});

describe('peer delivery that does not come', () => {
  test.each([
    'insecure-context',
    'no-webrtc',
    'no-webcrypto',
  ] as const)('%s is one notice, and nothing else happens', async (missing) => {
    const { leeway, tracker, codes } = setUp({}, { missing: () => missing });
    leeway.start();
    const playback = leeway.open(manifest);
    expect(codes()).toEqual([missing]);
    expect(tracker.sockets).toHaveLength(0);
    expect(playback.active).toBe(false);
    await expect(playback.load(request()).result).resolves.toMatchObject({ source: 'origin' });
    expect(leeway.state).toBe('off');
  });

  test('a public page connects to no private tracker', () => {
    for (const tracker of ['ws://192.168.1.5:8080', 'ws://localhost', 'nonsense']) {
      const { leeway, tracker: sockets, codes } = setUp({ tracker });
      leeway.start();
      expect(sockets.sockets).toHaveLength(0);
      expect(codes()).toEqual(['private-tracker']);
    }
  });

  test.each([
    ['needs-token', `${manifest}?Policy=x`, {}],
    ['foreign-manifest', 'https://other.example.com/m.m3u8', {}],
    ['bad-manifest', 'blob:https://video.example.com/1', {}],
  ])('%s', async (code, url, more) => {
    const { leeway, enter, sent, codes } = setUp();
    leeway.start();
    const playback = leeway.open(url);
    await enter(more);
    expect(codes()).toEqual([code]);
    expect(sent('join')).toEqual([]);
    expect(playback.active).toBe(false);
  });

  test('a token, or the policy, lets a signed manifest through', async () => {
    for (const [options, more] of [
      [{ token: 't' }, {}],
      [{}, { policy: { signed_manifests: 'share' } }],
    ] as const) {
      const { leeway, enter, sent } = setUp(options);
      leeway.start();
      leeway.open(`${manifest}?token=abc`);
      await enter(more);
      expect(sent('join')).toHaveLength(1);
    }
  });

  test.each([
    ['control-group', { policy: { control_group: true } }, 'control-group'],
    ['policy-off', { policy: { role: 'off' } }, 'policy'],
  ])('%s joins for its figures alone', async (code, more, reason) => {
    const { leeway, enter, joined, sent, codes, engines, connections } = setUp();
    leeway.start();
    leeway.open(manifest);
    await enter(more);
    await joined();
    expect(sent('join')).toMatchObject([{ role: 'off', want: 0 }]);
    expect(codes()).toEqual([code]);
    expect(engines[0]!.off).toBe(reason);
    expect(connections).toHaveLength(0);
  });

  test('a refusal is one notice with the tracker’s hint', async () => {
    const { leeway, tracker, codes, clock } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    const load = playback.load(request());
    await expect(load.result).resolves.toMatchObject({ source: 'origin', reason: 'no-holder' });
    await clock.advance(0);
    tracker.last.handlers.open();
    await settle();
    tracker.last.say({ type: 'error', code: 'bad-origin', message: 'No.', hint: 'Add it.' });
    await expect(playback.load(request()).result).resolves.toMatchObject({ source: 'origin', reason: 'policy' });
    expect(codes()).toEqual(['tracker-refused']);
    expect(leeway.stats().notice?.hint).toBe('Add it.');
  });

  test('a tracker that does not answer three times is one notice, which its welcome takes back', async () => {
    const { leeway, tracker, codes, clock, welcomed } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    for (let ms = 0; ms < 60_000 && codes().length === 0; ms += 100) await clock.advance(100);
    expect([codes(), tracker.sockets.length]).toEqual([['tracker-unreachable'], 3]);
    await clock.advance(60_000);
    expect(codes()).toHaveLength(1);
    await expect(playback.load(request()).result).resolves.toMatchObject({ source: 'origin' });
    expect(leeway.stats().notice?.code).toBe('tracker-unreachable');
    const attempts = tracker.sockets.length;
    for (let ms = 0; ms < 60_000 && tracker.sockets.length === attempts; ms += 100) await clock.advance(100);
    await welcomed();
    expect(leeway.stats().notice).toBeNull();
    leeway.stop();
  });

  test('a refused token is one notice, and the origin serves', async () => {
    const { leeway, tracker, codes, clock } = setUp({ token: 'mine' });
    leeway.start();
    const playback = leeway.open(manifest);
    playback.load(request());
    await clock.advance(0);
    tracker.last.handlers.open();
    await settle();
    expect(tracker.last.sent[0]).toMatchObject({ type: 'hello', token: 'mine' });
    tracker.last.say({ type: 'error', code: 'bad-token', message: 'The token is of another site.', hint: 'Ask.' });
    await expect(playback.load(request()).result).resolves.toMatchObject({ source: 'origin', reason: 'needs-token' });
    expect(codes()).toEqual(['token-refused']);
    expect(leeway.stats().notice?.message).toContain('another site');
  });
});

describe('consent and stop', () => {
  test('nothing connects before consent, and all ends with its withdrawal', async () => {
    const { leeway, tracker, codes, enter, joined, engines, clock } = setUp({ consent: 'required' });
    leeway.start();
    const playback = leeway.open(manifest);
    expect(playback.active).toBe(false);
    expect(tracker.sockets).toHaveLength(0);
    expect(codes()).toEqual(['consent-missing']);
    leeway.consent(true);
    expect(playback.active).toBe(true);
    await enter();
    await joined();
    leeway.consent(false);
    expect(engines[0]!.stopped).toBe(true);
    expect(clock.pending).toBe(0);
    expect(playback.active).toBe(false);
    leeway.consent(true);
    await clock.advance(1_000);
    expect(tracker.sockets).toHaveLength(2);
  });

  test('a stop releases everything and takes leave', async () => {
    const { leeway, tracker, enter, joined, engines, connections, clock, released, sent } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    await enter();
    await joined();
    tracker.last.say({ type: 'introduce', swarm, peers: [{ peer: peerA, role: 'viewer' }] });
    await settle();
    leeway.stop();
    await settle();
    expect(sent('stats')).toHaveLength(1);
    expect(sent('leave')).toEqual([{ type: 'leave', swarm }]);
    expect(engines[0]!.stopped).toBe(true);
    expect(connections.every(({ closed }) => closed)).toBe(true);
    expect(tracker.last.closed).toBe(1000);
    expect(clock.pending).toBe(0);
    expect(released).toHaveBeenCalledTimes(3);
    expect(leeway.state).toBe('stopped');
    await expect(playback.load(request()).result).resolves.toMatchObject({ source: 'origin' });
    leeway.start();
    expect(tracker.sockets).toHaveLength(1);
  });

  test('a listener that throws is a notice, not an error of the page', async () => {
    const { leeway, enter, codes } = setUp();
    leeway.on('state', () => {
      throw new Error('page');
    });
    leeway.start();
    await enter();
    expect(leeway.state).toBe('ready');
    expect(codes()).toEqual(['internal']);
  });

  test('players of one manifest share a title; the last one ends it', async () => {
    const { leeway, enter, joined, engines, sent } = setUp();
    leeway.start();
    const one = leeway.open(manifest);
    const two = leeway.open(`${manifest}#t=10`);
    two.onCollect = () => two.observe({ stalls: 3 });
    await enter();
    await joined();
    expect(engines).toHaveLength(1);
    one.close();
    expect(engines[0]!.stopped).toBe(false);
    two.close();
    expect(engines[0]!.stopped).toBe(true);
    expect(sent('leave')).toHaveLength(1);
    expect(sent('stats').at(-1)).toMatchObject({ stalls: 3 });
  });
});
