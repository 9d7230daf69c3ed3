import { describe, expect, test, vi } from 'vitest';
import { createClient, type LeewayOptions } from './client.ts';
import type { Environment } from './environment.ts';
import type { Notice } from './events.ts';
import type { SegmentRequest } from './ports.ts';
import { hasCredential, SiteRules } from './segment/index.ts';
import { FakeClock, settle } from './testing/clock.ts';
import { FakeConnection } from './testing/connection.ts';
import { FakeEngine } from './testing/engine.ts';
import { FakeTracker, peerA, swarm, welcome } from './testing/socket.ts';
import type { EngineContext } from './title.ts';

const manifest = 'https://video.example.com/film/master.m3u8';

function setUp(options: Partial<LeewayOptions> = {}, page: Partial<Environment> = {}) {
  const clock = new FakeClock();
  const tracker = new FakeTracker();
  const engines: FakeEngine[] = [];
  const contexts: EngineContext[] = [];
  const connections: FakeConnection[] = [];
  const listeners = { hide: () => {}, visibility: () => {} };
  const released = vi.fn();
  let bytes = 0;
  const environment: Environment = {
    clock,
    crypto: { digest: async () => new Uint8Array(32), verify: async () => true },
    random: () => 0.5,
    randomBytes: (length) => new Uint8Array(length).fill(++bytes),
    openSocket: tracker.open,
    createConnection: (configuration) => {
      const connection = new FakeConnection(configuration);
      connections.push(connection);
      return connection as unknown as RTCPeerConnection;
    },
    missing: () => null,
    addressSpace: () => 'public',
    localAccess: async () => true,
    metered: () => false,
    hidden: () => false,
    onVisibility: (f) => {
      listeners.visibility = f;
      return released;
    },
    onPageHide: (f) => {
      listeners.hide = f;
      return released;
    },
    ...page,
  };
  const leeway = createClient(
    { tracker: 'wss://tracker.example.com', ...options },
    {
      environment,
      version: 'test',
      createEngine: (context) => {
        contexts.push(context);
        engines.push(new FakeEngine());
        return engines.at(-1)!;
      },
      rules: ({ site }) => new SiteRules(site),
      hasCredential,
    },
  );
  const notices: Notice[] = [];
  leeway.on('notice', (notice) => notices.push(notice));
  const sent = (type: string) => tracker.sockets.flatMap((socket) => socket.sent.filter((m) => m.type === type));
  const welcomed = async (more: object = {}) => {
    tracker.last.handlers.open();
    await settle();
    tracker.last.say(welcome(more));
  };
  const enter = async (more: object = {}) => {
    // Connecting leaves the player's first requests alone, joining its first picture.
    await clock.advance(1_000);
    await welcomed(more);
    await clock.advance(1_000);
  };
  const joined = async () => {
    await settle();
    tracker.last.say({ type: 'joined', id: sent('join').at(-1)!.id, swarm, viewers: 2, seeds: 1 });
    await settle();
  };
  const codes = () => notices.map(({ code }) => code);
  return {
    leeway,
    clock,
    tracker,
    engines,
    contexts,
    connections,
    listeners,
    released,
    codes,
    sent,
    welcomed,
    enter,
    joined,
  };
}

function request(deadline = 20_000, origin?: SegmentRequest['origin']): SegmentRequest {
  return {
    url: 'https://video.example.com/film/1.ts',
    startMs: 60_000,
    durationMs: 4_000,
    rendition: 'main-0',
    bitrate: 1_000_000,
    adaptive: false,
    deadlineMs: () => deadline,
    upcoming: [],
    origin: origin ?? (async () => ({ data: new ArrayBuffer(100), status: 200, url: 'x' })),
  };
}

describe('a title', () => {
  test('joins by the names of the site', async () => {
    const { leeway, sent, enter, joined, engines, contexts } = setUp();
    leeway.start();
    leeway.open(`${manifest}?x=1`);
    await enter();
    await joined();
    expect(sent('join')).toMatchObject([{ title: '/film?x=1', manifest: '/film/master.m3u8', role: 'full', want: 8 }]);
    expect(contexts[0]).toMatchObject({ swarm: '01010101010101010101010101010101' });
    expect(contexts[0]!.self()).toBe('00000000000000000000000000000009');
    expect(engines[0]).toMatchObject({ linking: true, off: null });
    expect(engines[0]!.serverTime).toBeGreaterThan(1_789_999_000_000);
    expect(leeway.stats().titles).toMatchObject([{ title: '/film?x=1', viewers: 2, seeds: 1 }]);
  });

  test.each([
    ['at the first picture', 300],
    ['a second after the manifest, if the picture takes longer', 2_000],
  ])('joins %s: the first picture comes before links', async (_, pictureMs) => {
    const { clock, leeway, sent, welcomed } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    clock.setTimer(() => playback.observe({ startup_ms: pictureMs }), pictureMs);
    playback.load(request());
    await clock.advance(0);
    await welcomed();
    await clock.advance(Math.min(pictureMs + 100, 1_000) - 1);
    expect(sent('join')).toHaveLength(0);
    await clock.advance(1);
    expect(sent('join')).toHaveLength(1);
    await clock.advance(2_000);
    expect(sent('join')).toHaveLength(1);
  });

  test('a picture that is there before the session joins with it', async () => {
    const { clock, leeway, sent, welcomed } = setUp();
    leeway.start();
    leeway.open(manifest).observe({ startup_ms: 200 });
    await clock.advance(1_000);
    await welcomed();
    await clock.advance(0);
    expect(sent('join')).toHaveLength(1);
  });

  test.each([
    ['the player has asked for its first segment', 300],
    ['a second has passed without one', 2_000],
  ])('the tracker is asked when %s', async (_, segmentMs) => {
    const { clock, leeway, tracker } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    const origin = vi.fn(request().origin);
    clock.setTimer(() => playback.load(request(0, origin)), segmentMs);
    await clock.advance(Math.min(segmentMs, 1_000) - 1);
    expect(leeway.state).toBe('connecting');
    expect(tracker.sockets).toHaveLength(0);
    await clock.advance(1);
    expect(origin).toHaveBeenCalledTimes(segmentMs < 1_000 ? 1 : 0);
    expect(tracker.sockets).toHaveLength(1);
    await clock.advance(2_000);
    expect(tracker.sockets).toHaveLength(1);
  });

  test('gives open links to the engine and heeds its bans', async () => {
    const { leeway, enter, joined, engines, connections, tracker, sent } = setUp();
    leeway.start();
    leeway.open(manifest);
    await enter();
    await joined();
    tracker.last.say({ type: 'introduce', swarm, peers: [{ peer: peerA, role: 'viewer' }] });
    await settle();
    const offer = sent('signal').find(({ kind }) => kind === 'offer')!;
    const plan = { v: 1, data: 2, message: 16_384 };
    tracker.last.say({
      type: 'signal',
      swarm,
      from: peerA,
      role: 'viewer',
      link: offer.link,
      kind: 'answer',
      sdp: 'v=0',
      plan,
    });
    await settle();
    connections.at(-1)!.openAll();
    await settle();
    expect(engines[0]!.links).toHaveLength(1);
    expect(engines[0]!.linking).toBe(false);
    const { peer } = engines[0]!.links[0]!;
    engines[0]!.links[0]!.close('bad-piece', 6);
    engines[0]!.say('unlink', { peer, role: 'viewer', reason: 'bad-piece', banned: true });
    const before = connections.length;
    tracker.last.say({ type: 'introduce', swarm, peers: [{ peer: peerA, role: 'viewer' }] });
    await settle();
    expect(connections).toHaveLength(before);
  });

  test('holds far segments for a session that is coming up, near ones never', async () => {
    const { leeway, enter, joined, engines, clock } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    const near = playback.load(request(5_000));
    await expect(near.result).resolves.toMatchObject({ source: 'origin', reason: 'no-holder' });
    const far = playback.load(request());
    await clock.advance(300);
    await enter();
    await joined();
    await expect(far.result).resolves.toMatchObject({ reason: 'urgent' });
    expect(engines[0]!.loads).toHaveLength(1);
  });

  test('learns the line from segments that come without the engine, and holds by it', async () => {
    const { leeway, welcomed, joined, engines, contexts, clock } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    expect(playback.capacity()).toBeUndefined();
    // 500 kB in 100 ms, answered at once: a segment of 4 s at 1 Mbit/s takes 150 ms, a guess of 50 ms for the answer included.
    const origin = async () => ({ data: new ArrayBuffer(500_000), status: 200, url: 'x', transferMs: 100 });
    await playback.load(request(0, origin)).result;
    // One short transfer: with nearly all of the margin.
    expect(playback.capacity()! / 40_000_000).toBeCloseTo(1.061);
    // A quarter of its duration and three times what the origin takes: what is nearer than that does not wait.
    await expect(playback.load(request(1_400)).result).resolves.toMatchObject({ reason: 'no-holder' });
    // Of what bitrate is unknown, nothing is known.
    await playback.load({ ...request(3_500), bitrate: 0 }).result;
    const waits = vi.fn(request().origin);
    const load = playback.load(request(3_500, waits));
    await clock.advance(700);
    expect(waits).not.toHaveBeenCalled();
    await welcomed();
    await clock.advance(300);
    await joined();
    await load.result;
    expect(engines[0]!.loads).toHaveLength(1);
    expect(contexts[0]!.line.estimate()).toBeCloseTo(40_000_000);
  });

  test('what was held for a session does not wait longer than the origin needs', async () => {
    const { leeway, clock } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    const fast = async () => ({ data: new ArrayBuffer(500_000), status: 200, url: 'x', transferMs: 100 });
    await playback.load(request(0, fast)).result;
    const origin = vi.fn(request().origin);
    let deadline = 3_500;
    const load = playback.load({ ...request(0, origin), deadlineMs: () => deadline });
    const before = clock.now();
    const moving = () => {
      deadline = 3_500 - (clock.now() - before);
    };
    for (let n = 0; n < 35 && !origin.mock.calls.length; n++) {
      await clock.advance(100);
      moving();
    }
    await load.result;
    // Urgent with 1.45 s left: a quarter of the duration and three times 150 ms; the test looks every 100 ms.
    expect(deadline).toBeGreaterThanOrEqual(1_350);
    expect(deadline).toBeLessThanOrEqual(1_450);
  });

  test('a tracker that never answers holds nothing for long', async () => {
    const { leeway, clock, codes } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    const origin = vi.fn(request().origin);
    const load = playback.load(request(20_000, origin));
    await clock.advance(2_499);
    expect(origin).not.toHaveBeenCalled();
    await clock.advance(1);
    await expect(load.result).resolves.toMatchObject({ source: 'origin' });
    await clock.advance(60_000);
    expect(playback.active).toBe(false);
    expect(codes()).toEqual(['tracker-unreachable']);
  });

  test('hands the errors of the origin on, and makes up for its own', async () => {
    const { leeway, enter, joined, engines, codes } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    await enter();
    await joined();
    const gone = new Error('404');
    await expect(playback.load(request(9_000, () => Promise.reject(gone))).result).rejects.toBe(gone);
    expect(codes()).toEqual([]);
    engines[0]!.serve = () => Promise.reject(new Error('defect'));
    await expect(playback.load(request()).result).resolves.toMatchObject({ source: 'origin' });
    engines[0]!.load = () => {
      throw new Error('worse');
    };
    await expect(playback.load(request()).result).resolves.toMatchObject({ source: 'origin' });
    expect(codes()).toEqual(['internal']);
  });

  test('reports deltas, each once, and on pagehide', async () => {
    const { leeway, enter, joined, engines, sent, clock, listeners } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    playback.onCollect = () => playback.observe({ stalls: 1, startup_ms: 700.4 });
    await playback.load(request(1_000)).result;
    await enter();
    await joined();
    engines[0]!.delta.bytes.peer = 500;
    await clock.advance(10_000);
    expect(sent('stats')).toMatchObject([
      {
        swarm,
        bytes: { origin: 100, peer: 500 },
        segments: { origin: 1 },
        reasons: { 'no-holder': 1 },
        stalls: 1,
        startup_ms: 700,
        link_failures: {},
      },
    ]);
    playback.onCollect = () => {};
    listeners.hide();
    expect(sent('stats')[1]).toMatchObject({ bytes: { origin: 0, peer: 0 } });
    expect(sent('stats')[1]).not.toHaveProperty('startup_ms');
    expect(sent('stats')[1]).not.toHaveProperty('stalls');
  });

  test('comes back into the swarm after the tracker was lost, with the same engine', async () => {
    const { leeway, enter, joined, engines, sent, clock, tracker } = setUp();
    leeway.start();
    leeway.open(manifest);
    await enter();
    await joined();
    tracker.last.handlers.close(1006);
    expect(leeway.state).toBe('waiting');
    await clock.advance(250);
    await enter({ session: peerA });
    await joined();
    expect(sent('join')).toHaveLength(2);
    expect(engines).toHaveLength(1);
    expect(engines[0]!.stopped).toBe(false);
  });

  test('closes its links after a minute of paused and hidden, and wants them back afterwards', async () => {
    let hidden = false;
    const { leeway, enter, joined, sent, clock, listeners } = setUp({}, { hidden: () => hidden });
    leeway.start();
    const playback = leeway.open(manifest);
    await enter();
    await joined();
    playback.setPaused(true);
    hidden = true;
    listeners.visibility();
    await clock.advance(60_500);
    expect(sent('update').at(-1)).toMatchObject({ want: 0, saturated: true, links: 0 });
    hidden = false;
    listeners.visibility();
    await clock.advance(500);
    expect(sent('update').at(-1)).toMatchObject({ want: 8, saturated: false });
  });

  test('a metered line downloads only', async () => {
    const { leeway, enter, joined, sent, contexts } = setUp({}, { metered: () => true });
    leeway.start();
    leeway.open(manifest);
    await enter();
    await joined();
    expect(sent('join')).toMatchObject([{ role: 'leech' }]);
    expect(contexts[0]!.uploads()).toBe(false);
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
    await clock.advance(0);
    tracker.last.handlers.open();
    await settle();
    tracker.last.say({ type: 'error', code: 'bad-origin', message: 'No.', hint: 'Add it.' });
    await expect(load.result).resolves.toMatchObject({ source: 'origin', reason: 'policy' });
    expect(codes()).toEqual(['tracker-refused']);
    expect(leeway.stats().notice?.hint).toBe('Add it.');
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
    expect(released).toHaveBeenCalledTimes(2);
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
