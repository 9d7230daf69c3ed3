import { describe, expect, test } from 'vitest';
import { manifest, request, setUp } from './testing/client.ts';
import { settle } from './testing/clock.ts';
import { peerA, swarm, welcome } from './testing/socket.ts';

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

  test.each([
    ['needs-token', `${manifest}?Policy=x`],
    ['policy', 'https://other.example.com/m.m3u8'],
  ])('%s stays what it is when the tracker has new relays, or another policy', async (reason, url) => {
    const { leeway, tracker, enter } = setUp();
    leeway.start();
    leeway.open(url);
    await enter();
    const off = () => leeway.stats().titles[0]!.off;
    expect(off()).toBe(reason);
    tracker.last.say({ type: 'ice', ice_servers: [{ urls: ['stun:stun.example.com'] }], credentials_expire_ms: 0 });
    expect(off()).toBe(reason);
    tracker.last.say({ type: 'policy', policy: (welcome() as { policy: object }).policy });
    expect(off()).toBe(reason);
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

  test('a refusal between the join and the picture leaves no engine behind', async () => {
    const { leeway, tracker, clock, engines, welcomed, joined, loads } = setUp({ token: 'mine' });
    leeway.start();
    leeway.open(manifest);
    await clock.advance(0);
    await welcomed();
    await joined();
    tracker.last.say({ type: 'error', code: 'token-expired', message: 'It was good until now.', hint: 'Ask.' });
    await clock.advance(60_000);
    expect([engines.length, loads.engine, leeway.stats().titles[0]!.off]).toEqual([0, 0, 'needs-token']);
    expect(clock.pending).toBe(0);
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

  test('a swarm is left with the last of its titles', async () => {
    const { leeway, enter, joined, clock, sent } = setUp();
    leeway.start();
    const first = leeway.open(manifest);
    await enter();
    await joined();
    const second = leeway.open(manifest.replace('master', 'preview'));
    await clock.advance(1_000);
    await joined();
    expect(sent('join').map(({ title }) => title)).toEqual(['/film', '/film']);
    first.close();
    expect(sent('leave')).toEqual([]);
    second.close();
    expect(sent('leave')).toEqual([{ type: 'leave', swarm }]);
    leeway.stop();
  });

  test('a swarm is left whose join was answered when the title was closed', async () => {
    const { leeway, enter, joined, sent } = setUp();
    leeway.start();
    const first = leeway.open(manifest);
    await enter();
    first.close();
    expect(sent('leave')).toEqual([]);
    await joined();
    expect(sent('leave')).toEqual([{ type: 'leave', swarm }]);
    leeway.stop();
  });

  test('it is not left under a title that has been opened again, and has not been answered', async () => {
    const { leeway, enter, joined, clock, sent } = setUp();
    leeway.start();
    const first = leeway.open(manifest);
    await enter();
    first.close();
    const second = leeway.open(manifest);
    await clock.advance(1_000);
    expect(sent('join')).toHaveLength(2);
    await joined();
    expect(sent('leave')).toEqual([]);
    await joined();
    second.close();
    expect(sent('leave')).toEqual([{ type: 'leave', swarm }]);
    leeway.stop();
  });

  test('what a page says of a swarm comes within the tracker’s rate, and its leave last', async () => {
    const { leeway, enter, joined, clock, tracker } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    await enter({ limits: { message_bytes: 65_536, swarms: 4, messages_per_second: 3, links: 32 } });
    await joined();
    await clock.advance(1_000);
    for (let i = 0; i < 6; i++) leeway.open(manifest.replace('film', `film${i}`)).close();
    tracker.last.say({ type: 'policy', policy: (welcome() as { policy: object }).policy });
    await clock.advance(300);
    const before = tracker.last.sent.length;
    playback.close();
    const said = () => tracker.last.sent.slice(before).map(({ type }) => type);
    expect(said()).toEqual([]);
    await clock.advance(8_000);
    expect(said().filter((type) => /stats|update|leave/.test(String(type)))).toEqual(['update', 'stats', 'leave']);
    leeway.stop();
  });

  test('what the tracker hears of a swarm that was just left is no notice', async () => {
    const { leeway, enter, joined, codes, tracker } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    await enter();
    await joined();
    playback.close();
    // Signals wait behind all other messages, and there were many.
    tracker.last.say({
      type: 'error',
      code: 'not-joined',
      message: 'The session is not in this swarm.',
      hint: 'Join.',
    });
    expect(codes()).toEqual([]);
    // That would be a defect of this side.
    tracker.last.say({ type: 'error', code: 'not-ready', message: 'The session is not open yet.', hint: 'Say hello.' });
    expect(codes()).toEqual(['tracker-error']);
    leeway.stop();
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
