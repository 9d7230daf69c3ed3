import { describe, expect, test } from 'vitest';
import { hexToId } from './session/base64.ts';
import { manifest, request, setUp } from './testing/client.ts';
import { settle } from './testing/clock.ts';
import { description } from './testing/connection.ts';
import { peerA, swarm } from './testing/socket.ts';

const known = { metered: false, unknown: false, coarse: false };

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

  test('of a file is its key, whatever the page calls its manifests, and waits for no picture', async () => {
    const { leeway, sent, welcomed, joined, engines, clock } = setUp({ title: 'all' });
    leeway.start();
    leeway.open('https://video.example.com/downloads/a.iso#x', { file: true });
    await clock.advance(10);
    await welcomed();
    await clock.advance(100);
    await joined();
    expect(sent('join')).toMatchObject([{ title: '/downloads/a.iso', manifest: '/downloads/a.iso' }]);
    expect(engines).toHaveLength(1);
  });

  test.each([
    ['what comes next', [60_000], [2, 3]],
    ['nothing that is none of the site', [60_000], [], 'https://other.example.com/'],
  ])('joins with offers that want %s', async (_, deadlines, wanted, base = 'https://video.example.com/film/') => {
    const digest = async (data: Uint8Array) => {
      // The name tells one from the other.
      const [n] = /\d+(?=\.ts$)/.exec(new TextDecoder().decode(data))!;
      return new Uint8Array(32).fill(Number(n));
    };
    const { leeway, sent, enter, joined } = setUp({}, { crypto: { digest, verify: async () => true } });
    leeway.start();
    const playback = leeway.open(manifest);
    const upcoming = [2, 3].map((n) => ({ url: `${base}${n}.ts`, startMs: n, durationMs: 1 }));
    for (const ms of deadlines) playback.load({ ...request(ms), url: `${base}1.ts`, upcoming }).result.catch(() => {});
    await enter();
    const names = wanted.map((n) => hexToId(n.toString(16).padStart(2, '0').repeat(16)));
    const ask = names.length ? { wanted: names } : {};
    expect(sent('join')).toMatchObject([{ offers: [ask, ask] }]);
    await joined();
  });

  test.each([
    ['of its own', undefined, 30_000, 65_000],
    ['that all viewers of a live stream mean', 1_800_000_000_000, 1_800_000_030_000, 1_800_000_065_000],
  ])('tells the tracker what it holds on a timeline %s', async (_, zeroMs, from_ms, to_ms) => {
    const { leeway, sent, enter } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    const upcoming = [{ url: 'https://video.example.com/film/2.ts', startMs: 61_000, durationMs: 4_000 }];
    playback
      .load({ ...request(0), startMs: 60_000, durationMs: 1_000, zeroMs, upcoming, deadlineMs: () => 0 })
      .result.catch(() => {});
    await enter();
    expect(sent('join')).toMatchObject([{ range: { from_ms, to_ms } }]);
  });

  test('links made from then on use the credentials that the tracker renews', async () => {
    const { leeway, enter, joined, connections, tracker } = setUp();
    leeway.start();
    leeway.open(manifest);
    const servers = (credential: string) => [{ urls: ['turn:turn.example.com'], username: 'u', credential }];
    await enter({ ice_servers: servers('old') });
    await joined();
    tracker.last.say({ type: 'ice', ice_servers: servers('new'), credentials_expire_ms: 1_800_000_000_000 });
    tracker.last.say({ type: 'introduce', swarm, peers: [{ peer: peerA, role: 'viewer' }] });
    await settle();
    expect(connections.at(-1)!.configuration.iceServers).toMatchObject([{ credential: 'new' }]);
  });

  test.each([
    ['at the first picture', 300, 350],
    ['five seconds after the manifest, if the picture takes longer', 6_000, 4_950],
  ])('links %s: the first picture comes before links', async (_, pictureMs, atMs) => {
    const { clock, leeway, sent, loads, welcomed, joined, tracker, connections } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    clock.setTimer(() => playback.observe({ startup_ms: pictureMs }), pictureMs);
    playback.load(request(0));
    await clock.advance(0);
    await welcomed();
    await joined();
    tracker.last.say({ type: 'introduce', swarm, peers: [{ peer: peerA, role: 'viewer' }] });
    await clock.advance(atMs - 51);
    expect(loads.engine).toBe(0);
    await clock.advance(50);
    expect(connections).toHaveLength(0);
    await clock.advance(1);
    expect(connections).toHaveLength(1);
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

  test('the tracker is asked as soon as the page’s own scripts have run, and a title joins when it is opened', async () => {
    const { clock, leeway, tracker, welcomed, sent } = setUp();
    leeway.start();
    expect(leeway.state).toBe('connecting');
    expect(tracker.sockets).toHaveLength(0);
    await clock.advance(0);
    expect(tracker.sockets).toHaveLength(1);
    await welcomed();
    expect(sent('join')).toHaveLength(0);
    leeway.open(manifest);
    await settle();
    expect(sent('join')).toHaveLength(1);
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
      sdp: description,
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

  test('learns the line from segments that come without the engine', async () => {
    const { leeway, enter, joined, contexts } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    expect(playback.alone).toBe(true);
    expect(playback.capacity()).toBeUndefined();
    const origin = async () => ({ data: new ArrayBuffer(500_000), status: 200, url: 'x', transferMs: 100 });
    await playback.load(request(0, origin)).result;
    // One short transfer: with nearly all of the margin.
    expect(playback.capacity()! / 40_000_000).toBeCloseTo(1.061);
    await enter();
    await joined();
    expect(contexts[0]!.line.estimate()).toBeCloseTo(40_000_000);
    expect(playback.alone).toBe(false);
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
    listeners.sleep(true);
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
    tracker.last.handlers.close();
    expect(leeway.state).toBe('waiting');
    await clock.advance(6_000);
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

  test('what the site and the device say of fetching ahead reaches the engine', async () => {
    let metered = false;
    const { leeway, enter, joined, contexts } = setUp(
      {},
      {
        battery: () => true,
        line: () => ({ ...known, metered }),
      },
    );
    leeway.start();
    leeway.open(manifest);
    await enter({ policy: { prefetch: true, waste_bytes: 5_000_000 } });
    await joined();
    const said = { allowed: true, waste_bytes: 5_000_000, role: 'full', battery: true };
    expect(contexts[0]!.ahead()).toMatchObject(said);
    metered = true;
    expect(contexts[0]!.ahead()).toMatchObject({ ...said, role: 'leech' });
  });

  test('a page may be against fetching ahead', async () => {
    const { leeway, enter, joined, contexts } = setUp({ prefetch: false });
    leeway.start();
    leeway.open(manifest);
    await enter({ policy: { prefetch: true } });
    await joined();
    expect(contexts[0]!.ahead()).toMatchObject({ allowed: false });
  });

  test('a metered line downloads only', async () => {
    const { leeway, enter, joined, sent, contexts } = setUp({}, { line: () => ({ ...known, metered: true }) });
    leeway.start();
    leeway.open(manifest);
    await enter();
    await joined();
    expect(sent('join')).toMatchObject([{ role: 'leech' }]);
    expect(contexts[0]!.uploads()).toBe(false);
  });

  test.each(['full', 'relay-only'])('a line that becomes metered ends what a viewer sends as %s', async (role) => {
    let metered = false;
    const { leeway, enter, joined, contexts } = setUp({}, { line: () => ({ ...known, metered }) });
    leeway.start();
    leeway.open(manifest);
    await enter({ policy: { role } });
    await joined();
    expect(contexts[0]!.uploads()).toBe(true);
    metered = true;
    expect(contexts[0]!.uploads()).toBe(false);
  });

  test.each([
    ['gives nothing', undefined, 'leech'],
    ['gives where the site allows it', 'full', 'full'],
  ] as const)('a phone that does not say how it is connected %s', async (_, unknown_line, role) => {
    const { leeway, enter, joined, sent, contexts } = setUp({}, { line: () => ({ ...known, unknown: true }) });
    leeway.start();
    leeway.open(manifest);
    await enter(unknown_line && { policy: { unknown_line } });
    await joined();
    expect(sent('join')).toMatchObject([{ role }]);
    expect(contexts[0]!.uploads()).toBe(role === 'full');
  });
});

describe('what is kept on the disk', () => {
  test.each([
    ['is deleted when consent is withdrawn', { disk_bytes: 1_000 }, 1],
    ['is looked for only where the site lets pages keep something', {}, 0],
  ])('%s', async (_, policy, cleared) => {
    const { leeway, enter, loads } = setUp();
    leeway.start();
    leeway.open(manifest);
    await enter({ policy });
    leeway.consent(false);
    await settle();
    expect(loads.cleared).toBe(cleared);
  });

  test('is deleted also before the tracker has said what the site lets pages keep', async () => {
    const { leeway, loads } = setUp();
    leeway.start();
    leeway.consent(false);
    await settle();
    expect(loads.cleared).toBe(1);
  });

  test('is deleted when the page says so; what fails is said and not thrown', async () => {
    const { leeway, loads, codes } = setUp();
    await leeway.clear();
    expect([loads.cleared, codes()]).toEqual([1, []]);
    loads.failing = true;
    await leeway.clear();
    expect(codes()).toEqual(['internal']);
  });

  test('may be more than a page wants', async () => {
    const { leeway, enter, joined, contexts } = setUp({ disk: false });
    leeway.start();
    leeway.open(manifest);
    await enter({ policy: { disk_bytes: 1_000 } });
    await joined();
    expect(contexts[0]!.ahead().disk_bytes).toBe(false);
  });
});
