import { describe, expect, it } from 'vitest';
import type { Background, BackgroundLane } from '../background/index.ts';
import type { PeerLink } from '../ports.ts';
import { decode, encode, flagBackground, type Message, rejectLaneOff } from '../protocol/peer.ts';
import { FakeClock } from '../testing/clock.ts';
import { createPeer, type PeerEvents, type PeerHost } from './peer.ts';

const self = '1'.repeat(32);
const other = '2'.repeat(32);
const swarm = '5'.repeat(32);
const segment = 'a'.repeat(32);

const setUp = async (greeted?: string[], lane?: BackgroundLane, drifted = false) => {
  const clock = new FakeClock();
  const said: Message[] = [];
  const ended: [string, boolean][] = [];
  const held = new Set([segment]);
  const lost: [number, number][] = [];
  const counts: string[] = [];
  const link: PeerLink = {
    peer: other,
    role: 'viewer',
    maxMessage: 16_384,
    greeted,
    path: () => 'direct',
    sendControl: (b) => void said.push(decode('control', b)!),
    sendData: () => true,
    controlRoom: () => true,
    waiting: () => 0,
    sendBackground: () => true,
    sendAck: () => {},
    close: () => {},
  };
  const nothing = () => {};
  const host: PeerHost = {
    clock,
    self: () => self,
    swarm,
    uploads: {
      piece: (s) => (held.has(s) ? new Uint8Array(100) : undefined),
      pieces: (s) => (held.has(s) ? 1 : 0),
      allowed: () => true,
      queued: () => 0,
      idle: () => true,
      drained: nothing,
    },
    greeting: {
      announcement: (s) => (held.has(s) ? { segment: s, state: 2, pieces: 1 } : undefined),
      held: () => held,
      flags: () => 0,
    },
    silence: { drifted: () => drifted },
    verification: { piece: nothing, asked: nothing, certificate: nothing, none: nothing },
    stats: { count: (name) => counts.push(name), wasted: (bytes, lane) => lost.push([bytes, lane]) },
  };
  const events: PeerEvents = {
    ready: nothing,
    sent: nothing,
    closed: (_, reason, ban) => ended.push([reason, ban]),
    changed: nothing,
  };
  if (lane) host.background = () => ({ add: () => lane }) as unknown as Background;
  const peer = createPeer(link, host, events);
  const hear = (m: Message) => link.onControl!(encode(m));
  const hello = { minVersion: 1, maxVersion: 1, flags: lane ? flagBackground : 0, maxRequests: 64, peer: other, swarm };
  hear({ type: 'hello', ...hello });
  const take = (type: Message['type']) => said.splice(0).filter((m) => m.type === type);
  const ask = (piece = 0, lane: 0 | 1 = 0) => {
    const d = { segment, piece, length: 100, lane, reason: 'near', sentUs: Math.floor(clock.now() * 1000) };
    return peer.supply.downloads.add(d);
  };
  return { clock, link, peer, said, ended, held, lost, counts, hear, take, ask };
};

describe('a peer that an answer has greeted', () => {
  it('says no second hello, and what is not held any more', async () => {
    const gone = 'c'.repeat(32);
    const { said } = await setUp([segment, gone]);
    expect(said.map(({ type }) => type)).toEqual(['ping', 'have']);
    expect(said[1]).toMatchObject({
      entries: [
        { segment, state: 2 },
        { segment: gone, state: 0 },
      ],
    });
  });
});

describe('a peer that gave something up', () => {
  it('says so before it rejects, however short ago it announced something else', async () => {
    const { peer, said, held, hear, clock } = await setUp();
    peer.announce('b'.repeat(32));
    said.splice(0);
    held.delete(segment);
    peer.announce(segment);
    expect(said).toEqual([]);
    hear({ type: 'request', segment, lane: 0, requests: [{ id: 7, piece: 0 }] });
    expect(said).toEqual([
      { type: 'have', entries: [{ segment, state: 0, pieces: 0 }] },
      { type: 'reject', reason: 3, ids: [7] },
    ]);
    peer.drop('shutdown', 0);
    expect(clock.pending).toBe(0);
  });
});

describe('a reject', () => {
  it.each([
    ['of what is announced is a lie', 2, 0, true],
    ['of a piece above what is announced is none', 1, 1, false],
    ['of what was taken back is none', 0, 0, false],
  ])('%s', async (_, pieces, piece, lie) => {
    const { hear, ask, ended } = await setUp();
    hear({ type: 'have', entries: [{ segment, state: 2, pieces: Math.max(pieces, 1) }] });
    const { id } = ask(piece);
    if (!pieces) hear({ type: 'have', entries: [{ segment, state: 0, pieces: 0 }] });
    for (const reason of [0, 3, 5]) hear({ type: 'reject', reason, ids: [id] });
    expect(ended).toEqual(lie ? [['false-have', true]] : []);
  });

  it('that says busy pauses longer and longer, until something comes', async () => {
    const { clock, hear, ask, peer, link, ended } = await setUp();
    const pauses = [];
    for (let n = 0; n < 9; n++) {
      hear({ type: 'reject', reason: 1, ids: [ask().id] });
      pauses.push(Math.round(peer.supply.stalledUntilUs / 1000 - clock.now()));
      for (let left = pauses.at(-1)!; left > 0; left -= 5_000) {
        await clock.advance(Math.min(left, 5_000));
        hear({ type: 'pong', nonce: 0, sentAt: 0 });
      }
    }
    expect(pauses).toEqual([200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000]);
    for (let n = 0; n < 164; n++) {
      const { id } = ask();
      link.onData!(encode({ type: 'data', request: id, offset: 0, sentAt: 0, payload: new Uint8Array(100) }));
    }
    hear({ type: 'reject', reason: 1, ids: [ask().id] });
    expect(peer.supply.stalledUntilUs / 1000 - clock.now()).toBeCloseTo(200, 0);
    expect(ended).toEqual([]);
  });

  it('pauses for as long as it says, also where requests stall meanwhile', async () => {
    const { clock, hear, ask, peer } = await setUp();
    hear({ type: 'reject', reason: 2, ids: [ask().id] });
    peer.supply.stalled(clock.now() * 1000);
    expect(peer.supply.stalledUntilUs / 1000 - clock.now()).toBeCloseTo(5_000, 0);
  });
});

describe('a link', () => {
  it('ends when the other side talks without end', async () => {
    const { clock, hear, ended, counts } = await setUp();
    const talk = (n: number) => {
      for (; n > 0; n--) hear({ type: 'have', entries: [{ segment, state: 0, pieces: 0 }] });
    };
    talk(900);
    await clock.advance(5_001);
    // The requests of a quick download do not count.
    for (let id = 0; id < 2_000; id++) hear({ type: 'request', segment, lane: 0, requests: [{ id, piece: 0 }] });
    talk(1_000);
    expect(ended).toEqual([]);
    talk(1);
    expect(ended).toEqual([['over-limit', true]]);
    expect(counts).toContain('over_limit_messages');
  });

  const ids = Array.from({ length: 255 }, (_, n) => n);
  /** What a stranger says, and how often within the limits. */
  const floods: { limit: string; m: Message; times: number }[] = [
    {
      limit: 'requests',
      m: { type: 'request', segment: other, lane: 0, requests: ids.map((id) => ({ id, piece: 0 })) },
      times: 64,
    },
    { limit: 'strays', m: { type: 'cancel', ids }, times: 1 },
    { limit: 'strays', m: { type: 'reject', reason: 1, ids }, times: 1 },
    { limit: 'strays', m: { type: 'certificate-none', segment, reason: 0, objectLength: 0 }, times: 256 },
    { limit: 'have', m: { type: 'have', entries: ids.map(() => ({ segment, state: 0, pieces: 0 })) }, times: 32 },
    { limit: 'certificates', m: { type: 'certificate-request', segments: ids.map(() => segment) }, times: 16 },
    { limit: 'pings', m: { type: 'ping', nonce: 0, sentAt: 0 }, times: 64 },
  ];
  it.each(floods)('ends for too many $limit ($m.type)', async ({ limit, m, times }) => {
    const { hear, ended, counts } = await setUp();
    for (let n = 0; n < times; n++) hear(m);
    expect(ended).toEqual([]);
    hear(m);
    expect(ended).toEqual([['over-limit', true]]);
    expect(counts).toContain(`over_limit_${limit}`);
  });

  it('sends without end, however quickly it is asked', async () => {
    const { hear, ended, link } = await setUp();
    let sent = 0;
    link.sendData = () => ++sent > 0;
    for (let id = 0; id < 40_000; id++) hear({ type: 'request', segment, lane: 0, requests: [{ id, piece: 0 }] });
    expect(ended).toEqual([]);
    expect(sent).toBe(40_000);
  });

  it('ends for data in crumbs', async () => {
    const crumbs = (request: number, { link, ended }: Awaited<ReturnType<typeof setUp>>) => {
      let n = 0;
      for (; !ended.length && n < 5_000; n++)
        link.onData!(encode({ type: 'data', request, offset: n % 100, sentAt: 0, payload: new Uint8Array(1) }));
      return n;
    };
    const asked = await setUp();
    const { id } = asked.ask();
    expect(crumbs(id, asked)).toBe(65);
    expect(crumbs(1_000, await setUp())).toBe(1_025);
    const canceled = await setUp();
    const d = canceled.ask();
    canceled.peer.supply.cancel(() => true);
    expect(crumbs(d.id, canceled)).toBe(64 + 1_025);
    for (const { ended, counts } of [asked, canceled]) {
      expect(ended).toEqual([['over-limit', true]]);
      expect(counts).toContain('over_limit_data');
    }
  });

  it('is at most a second long, however late the other side answers', async () => {
    const { clock, hear, ask, peer, link } = await setUp();
    for (const late of [50_000_000, 4_000_000_000])
      hear({ type: 'pong', nonce: 0, sentAt: (Math.floor(clock.now() * 1000) - late) >>> 0 });
    expect(peer.supply.meter.rttUs).toBe(1_000_000);
    const { id } = ask();
    await clock.advance(3_000);
    link.onData!(encode({ type: 'data', request: id, offset: 0, sentAt: 0, payload: new Uint8Array(1) }));
    expect(peer.supply.meter.rttUs).toBe(1_000_000);
    // One byte a second ago pays for nothing.
    expect(peer.supply.dataUs).toBe(Math.floor(clock.now() * 1000) - 3_000_000 + 183);
  });

  it('is pinged every five seconds, also while this side talks and the other does not', async () => {
    const { clock, peer, take, ended } = await setUp();
    take('ping');
    const pings = [];
    for (let s = 1; s <= 21; s++) {
      peer.announce(segment);
      await clock.advance(1_000);
      if (take('ping').length) pings.push(s);
      if (ended.length) break;
    }
    expect(pings).toEqual([10, 15]);
    expect(ended).toEqual([['timeout', false]]);
    expect(clock.pending).toBe(0);
  });

  it('does not end for a pong that took long: requests, and what took them back, may have come together', async () => {
    const { clock, hear, peer, take, ended } = await setUp();
    take('ping');
    const answer = () => {
      for (const ping of take('ping') as (Message & { type: 'ping' })[]) hear({ ...ping, type: 'pong' });
    };
    peer.supply.stalled(clock.now() * 1000);
    answer();
    await clock.advance(3_000 + 2_001);
    // Suspicion ends, until the next stall.
    answer();
    await clock.advance(4_000);
    answer();
    expect(ended).toEqual([]);
    peer.supply.stalled(clock.now() * 1000);
    answer();
    await clock.advance(3_000);
    answer();
    expect(ended).toEqual([['stalled', false]]);
  });

  it('ends at the second pong after a stall, unless a byte came, of whatever was asked', async () => {
    for (const late of [false, true]) {
      const { clock, hear, ask, peer, link, take, ended } = await setUp();
      const d = ask();
      await clock.advance(1_100);
      peer.supply.cancel(() => true);
      peer.supply.stalled(clock.now() * 1000);
      // The first answers the ping that followed hello, and proves nothing.
      for (const ping of take('ping') as (Message & { type: 'ping' })[]) hear({ ...ping, type: 'pong' });
      expect(ended).toEqual([]);
      await clock.advance(2_900);
      if (late) link.onData!(encode({ type: 'data', request: d.id, offset: 0, sentAt: 0, payload: new Uint8Array(1) }));
      await clock.advance(200);
      for (const ping of take('ping') as (Message & { type: 'ping' })[]) hear({ ...ping, type: 'pong' });
      expect(ended).toEqual(late ? [] : [['stalled', false]]);
      peer.drop('shutdown', 0);
      expect(clock.pending).toBe(0);
    }
  });
});

describe('three stalls in a row', () => {
  it.each([
    ['of a peer that served, and sent nothing since, are no peer’s fault', true, false, false, 'timeout'],
    ['of a peer that served, and says something, end the link for it', true, true, false, 'stalled'],
    ['of a peer that never served end the link for it', false, false, false, 'stalled'],
    ['while this side was adrift are no peer’s fault', false, true, true, 'timeout'],
  ])('%s', async (_, served, speaks, drifted, reason) => {
    const { clock, hear, ask, peer, link, ended } = await setUp(undefined, undefined, drifted);
    for (let n = 0; served && n < 164; n++) {
      const { id } = ask();
      link.onData!(encode({ type: 'data', request: id, offset: 0, sentAt: 0, payload: new Uint8Array(100) }));
    }
    for (let n = 0; n < 3; n++) {
      expect(ended).toEqual([]);
      peer.supply.stalled(clock.now() * 1000);
      if (speaks && n === 1) hear({ type: 'ping', nonce: 0, sentAt: 0 });
    }
    expect(ended).toEqual([[reason, false]]);
    expect(clock.pending).toBe(0);
  });
});

describe('the background of a link', () => {
  const lane = () => {
    const did: unknown[] = [];
    const note =
      (name: string) =>
      (...with_: unknown[]) => {
        did.push([name, ...with_]);
      };
    const fake = { wake: note('wake'), requested: note('requested'), gone: note('gone'), reset: note('reset') };
    return { did, lane: { ...fake, took() {}, close: note('close') } as unknown as BackgroundLane };
  };

  it('is measured anew when packets take another way', async () => {
    const { did, lane: fake } = lane();
    const { link } = await setUp(undefined, fake);
    link.onMoved!();
    expect(did).toEqual([['reset']]);
  });

  it('has requests that are no debt of the peer, and no fault when they are rejected', async () => {
    const { did, lane: fake } = lane();
    const { peer, hear, ask, lost, clock } = await setUp(undefined, fake);
    const d = ask(0, 1);
    expect(peer.supply.downloads.queued()).toBe(0);
    d.received = 30;
    hear({ type: 'reject', reason: 4, ids: [d.id] });
    expect([did, lost]).toEqual([[['gone', 70]], [[30, 1]]]);
    expect(peer.supply.stalledUntilUs).toBe(0);
    expect(peer.supply.behindUs).toBeGreaterThan(clock.now() * 1000);
    hear({ type: 'reject', reason: rejectLaneOff, ids: [ask(1, 1).id] });
    expect(peer.supply.behindUs).toBe(Number.MAX_SAFE_INTEGER);
    hear({ type: 'reject', reason: 4, ids: [ask(2).id] });
    expect(peer.supply.stalledUntilUs).toBeGreaterThan(0);
  });

  it('is owed no more of what comes as foreground', async () => {
    const { did, lane: fake } = lane();
    const { link, ask } = await setUp(undefined, fake);
    const send = (request: number, offset: number, length: number) =>
      link.onData!(encode({ type: 'data', request, offset, sentAt: 0, payload: new Uint8Array(length) }));
    const { id } = ask(0, 1);
    send(id, 0, 60);
    send(id, 60, 40);
    send(ask().id, 0, 100);
    expect(did).toEqual([
      ['gone', 60],
      ['gone', 40],
    ]);
  });

  it('counts as foreground once a request is promoted', async () => {
    const { peer, ask, clock } = await setUp();
    const d = ask(0, 1);
    await clock.advance(500);
    peer.supply.downloads.promote(d, 1_234);
    expect([d.lane, d.sentUs, peer.supply.downloads.queued()]).toEqual([0, 1_234, 100]);
    peer.supply.downloads.remove(d);
    expect(peer.supply.downloads.queued()).toBe(0);
  });
});
