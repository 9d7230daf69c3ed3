import { expect, it } from 'vitest';
import type { Background, BackgroundLane, BackgroundSource } from '../background/index.ts';
import { createCache } from '../cache/cache.ts';
import type { EngineEvents, LinkCloseReason, PeerLink, PeerRole } from '../ports.ts';
import {
  byePolicy,
  byeReplaced,
  decode,
  encode,
  flagBackground,
  type Message,
  noneTooLarge,
  rejectLaneOff,
  rejectOutOfRange,
  rejectWithdrawn,
} from '../protocol/peer.ts';
import { createPeerStats } from '../stats/peers.ts';
import { createStats } from '../stats/stats.ts';
import { FakeClock } from '../testing/clock.ts';
import { createGreeting } from './greeting.ts';
import { createPeers } from './peers.ts';
import type { Peer } from './ports.ts';
import type { Segment } from './segments.ts';
import type { Shared } from './shared.ts';
import type { Silence } from './silence.ts';
import type { Verification } from './verification.ts';

const id = (n: number) => n.toString(16).padStart(32, '0');
const self = id(1);
const swarm = id(5);
const segment = id(10);

/** The peers of an engine whose verification and silence note what they are told. */
const setUp = (paced = false) => {
  const clock = new FakeClock();
  const told: unknown[] = [];
  const events: [keyof EngineEvents, unknown][] = [];
  const can = { upload: true, background: true };
  const cache = createCache(
    1 << 20,
    () => true,
    () => {},
  );
  cache.open(segment, 100);
  cache.put(segment, 0, new Uint8Array(100));
  const said = createPeerStats();
  const stats = createStats();
  const shared = {
    clock,
    cache,
    stats,
    stopped: false,
    emit: (event: keyof EngineEvents, detail: unknown) => void events.push([event, detail]),
    changed: () => void told.push('changed'),
  } as unknown as Shared;
  const greeting = createGreeting({
    cache,
    self: () => self,
    swarm,
    uploads: () => can.upload,
    wanted: () => false,
    certificate: () => undefined,
  });
  const verification = {
    gone: (p: Peer) => told.push(['forgotten', p.link.peer]),
    asked: (p: Peer, ids: string[]) => told.push(['asked', p.link.peer, ids]),
    none: (p: Peer, which: string, reason: number, length: number) =>
      told.push(['none', p.link.peer, which, reason, length]),
    certificate: (p: Peer, which: string, raw: Uint8Array) =>
      told.push(['certificate', p.link.peer, which, raw.length]),
  } as unknown as Verification;
  const silence = {
    gone: (p: Peer, reason: LinkCloseReason) => told.push(['silent', p.link.peer, reason]),
    named: (p: Peer, again: () => void) => {
      told.push(['named', p.link.peer]);
      again();
    },
    drifted: () => false,
  } as unknown as Silence;
  /** What a paced host is given to send, by peer, and the peers that have called it. */
  const sources: Record<string, BackgroundSource> = {};
  const woken: string[] = [];
  const background = () =>
    ({
      add(_: unknown, source: BackgroundSource, peer: string) {
        sources[peer] = source;
        return {
          wake: () => void woken.push(peer),
          ack: () => true,
          gone() {},
          close() {},
        } as unknown as BackgroundLane;
      },
    }) as unknown as Background;
  const peers = createPeers(shared, {
    background: paced ? background : undefined,
    self: () => self,
    swarm,
    said,
    greeting,
    verification,
    silence,
    uploads: () => can.upload,
    serves: () => can.background,
  });

  /** A link to peer n, which has said hello. */
  const link = (n: number, role: PeerRole = 'viewer') => {
    const out: Message[] = [];
    const closes: unknown[] = [];
    const room = { data: true };
    const one: PeerLink = {
      peer: id(n),
      role,
      maxMessage: 16_384,
      path: () => (n % 2 ? 'relay' : 'direct'),
      sendControl: (b) => void out.push(decode('control', b)!),
      sendData: (b) => {
        if (room.data) out.push(decode('data', b)!);
        return room.data;
      },
      controlRoom: () => true,
      waiting: () => 0,
      sendBackground: () => true,
      sendAck: () => {},
      close: (reason, bye) => void closes.push([reason, bye]),
    };
    peers.add(one);
    const hear = (m: Message) => one.onControl!(encode(m));
    if (one.onControl) {
      hear({
        type: 'hello',
        minVersion: 1,
        maxVersion: 1,
        flags: paced ? flagBackground : 0,
        maxRequests: 64,
        peer: id(n),
        swarm,
      });
    }
    const take = (type: Message['type']) => out.splice(0).filter((m) => m.type === type);
    const request = (lane: 0 | 1, ...ids: number[]) =>
      hear({ type: 'request', segment, lane, requests: ids.map((i) => ({ id: i, piece: 0 })) });
    return { one, out, closes, room, hear, take, request, peer: () => peers.byId.get(id(n))! };
  };
  const take = () => told.splice(0).filter((t) => t !== 'changed');
  return { clock, peers, shared, can, cache, stats, said, events, sources, woken, link, take };
};

it('a link that has opened is a peer, of use from its hello on', () => {
  const { peers, events, link, take } = setUp();
  const a = link(2);
  expect(peers.all().map((p) => p.link.peer)).toEqual([id(2)]);
  expect(a.take('have')).toMatchObject([{ entries: [{ segment, state: 2 }] }]);
  expect(events).toEqual([['link', { peer: id(2), role: 'viewer', path: 'direct' }]]);
  a.one.onClose!('closed');
  expect(peers.all()).toEqual([]);
  expect(events[1]).toEqual(['unlink', { peer: id(2), role: 'viewer', reason: 'closed', banned: false }]);
  expect(take()).toEqual([
    ['forgotten', id(2)],
    ['silent', id(2), 'closed'],
  ]);
});

it('a second link to a peer takes the place of the first', () => {
  const { peers, link } = setUp();
  const first = link(2);
  const second = link(2);
  expect(first.closes).toEqual([['closed', byeReplaced]]);
  expect(peers.all().map((p) => p.link)).toEqual([second.one]);
  expect(second.closes).toEqual([]);
});

it('a banned peer is reported once and not linked again', () => {
  const { events, said, link } = setUp();
  const a = link(2);
  a.peer().drop('false-have', byePolicy, true);
  expect(events.at(-1)).toMatchObject(['unlink', { banned: true, reason: 'false-have' }]);
  expect(said.take()).toEqual({ [id(2)]: { blame: 1 } });
  const again = link(2);
  expect(again.closes).toEqual([['policy', byePolicy]]);
  expect(again.peer()).toBeUndefined();
  expect(said.take()).toEqual({});
  const b = link(3);
  b.peer().drop('stalled', byePolicy);
  expect(link(3).closes).toEqual([]);
});

it('a link that opens after the engine has stopped is closed', () => {
  const { peers, shared, link } = setUp();
  shared.stopped = true;
  expect(link(2).closes).toEqual([['policy', byePolicy]]);
  expect(peers.all()).toEqual([]);
});

it('what a peer asks for goes out and is counted by its path', () => {
  const { stats, said, events, link } = setUp();
  const a = link(2);
  const b = link(3);
  a.request(0, 1);
  b.request(0, 2, 3);
  expect(a.take('data')).toMatchObject([{ request: 1 }]);
  expect(b.take('data')).toMatchObject([{ request: 2 }, { request: 3 }]);
  expect([a.peer().uploaded, b.peer().uploaded]).toEqual([100, 200]);
  expect(said.take()).toEqual({ [id(2)]: { out: 100 }, [id(3)]: { relay_out: 200 } });
  expect(stats.take()).toMatchObject({
    uploaded: { direct: 100, relay: 200 },
    lanes: { foreground: 300, background: 0 },
  });
  const pieces = events.filter(([event]) => event === 'piece').map(([, detail]) => detail);
  expect(pieces).toContainEqual({ peer: id(2), role: 'viewer', direction: 'out', bytes: 100, segment });
  expect(pieces.length).toBe(3);
});

it('the background waits for what other links still have to send', async () => {
  const { sources, woken, link } = setUp(true);
  const [a, b] = [link(2), link(4)];
  a.request(0, 1);
  b.request(1, 2);
  const [first, second] = [sources[id(2)]!, sources[id(4)]!];
  expect([first.waiting(), second.waiting()]).toEqual([true, false]);
  woken.splice(0);
  expect(first.next(1_000)).toMatchObject({ request: 1 });
  await Promise.resolve();
  expect(woken).toEqual([id(4)]);
  expect(second.next(1_000)).toMatchObject({ request: 2 });
});

it.each<[string, (a: { hear(m: Message): void; one: PeerLink }) => void]>([
  ['is taken back', ({ hear }) => hear({ type: 'cancel', ids: [1] })],
  ['ends with its link', ({ one }) => one.onClose!('closed')],
])('the background goes on where the foreground of another link %s', async (_, end) => {
  const { sources, woken, link } = setUp(true);
  const [a, b] = [link(2), link(4)];
  a.request(0, 1);
  b.request(1, 2);
  woken.splice(0);
  end(a);
  await Promise.resolve();
  expect(woken).toEqual([id(4)]);
  expect(sources[id(4)]!.next(1_000)).toMatchObject({ request: 2 });
});

it('a viewer that does not send rejects, in the background alone or at all', () => {
  const { can, sources, link } = setUp(true);
  const a = link(2);
  can.background = false;
  a.request(1, 1);
  expect(a.take('reject')).toMatchObject([{ ids: [1], reason: rejectLaneOff }]);
  a.request(0, 2);
  expect(sources[id(2)]!.next(1_000)).toMatchObject({ request: 2 });
  can.background = true;
  a.request(1, 3);
  expect(sources[id(2)]!.next(1_000)).toMatchObject({ request: 3 });
  can.upload = false;
  a.request(0, 4);
  expect(a.take('reject')).toMatchObject([{ ids: [4], reason: rejectLaneOff }]);
});

it('a request for what is not held is rejected with its reason', () => {
  const { link } = setUp();
  const a = link(2);
  a.hear({ type: 'request', segment, lane: 0, requests: [{ id: 1, piece: 1 }] });
  a.hear({ type: 'request', segment: id(12), lane: 0, requests: [{ id: 2, piece: 0 }] });
  expect(a.take('reject')).toMatchObject([
    { ids: [1], reason: rejectOutOfRange },
    { ids: [2], reason: rejectWithdrawn },
  ]);
});

it('what is held is announced to all viewers while this side uploads, and to seeds what is whole of a live stream', async () => {
  const { clock, peers, can, cache, link } = setUp();
  const a = link(2);
  const b = link(4);
  const seed = link(6, 'seed');
  await clock.advance(100);
  for (const l of [a, b, seed]) l.out.splice(0);
  cache.open(id(11), 100);
  cache.put(id(11), 0, new Uint8Array(100));
  peers.announce(id(11));
  for (const l of [a, b]) expect(l.take('have')).toMatchObject([{ entries: [{ segment: id(11), state: 2 }] }]);
  expect(seed.take('have')).toEqual([]);
  peers.announce(id(11), true);
  expect(seed.take('have')).toMatchObject([{ entries: [{ segment: id(11), state: 2 }] }]);
  await clock.advance(100);
  a.out.splice(0);
  can.upload = false;
  peers.announce(segment, true);
  await clock.advance(100);
  expect(a.take('have')).toEqual([]);
  expect(seed.take('have')).toEqual([]);
});

it('what is asked for of one segment is taken back at all peers, whole or from one piece to another', async () => {
  const { peers, link } = setUp();
  const links = [link(2), link(3)];
  const s = { id: segment, ref: { durationMs: 4_000 } } as Segment;
  const ask = (p: Peer, of: string, piece: number) =>
    p.supply.downloads.add({ segment: of, piece, length: 100, lane: 0, reason: 'near', sentUs: 0 }).id;
  const asked = links.map((l) => [0, 1, 2, 3].map((piece) => ask(l.peer(), segment, piece)));
  const others = links.map((l) => ask(l.peer(), id(12), 1));
  peers.outdone(s, [1, 3]);
  for (const [n, l] of links.entries()) expect(l.take('cancel')).toMatchObject([{ ids: asked[n]!.slice(1, 3) }]);
  peers.outdone(s);
  for (const [n, l] of links.entries()) expect(l.take('cancel')).toMatchObject([{ ids: [asked[n]![0], asked[n]![3]] }]);
  const last = links.map((l) => ask(l.peer(), segment, 0));
  peers.cancel(s);
  for (const [n, l] of links.entries()) expect(l.take('cancel')).toMatchObject([{ ids: [last[n]] }]);
  for (const [n, l] of links.entries()) expect([...l.peer().supply.downloads.all.keys()]).toEqual([others[n]]);
});

it('certificates and silence go to the parts that they concern', () => {
  const { link, take } = setUp();
  const a = link(2);
  a.hear({ type: 'certificate-request', segments: [segment] });
  expect(take()).toEqual([['asked', id(2), [segment]]]);
  a.hear({ type: 'certificate', segment, certificate: new Uint8Array(300) });
  expect(take()).toEqual([['certificate', id(2), segment, 300]]);
  a.hear({ type: 'certificate-none', segment, reason: noneTooLarge, objectLength: 70_000_000 });
  expect(take()).toEqual([['none', id(2), segment, noneTooLarge, 70_000_000]]);
  let offered = 0;
  a.one.onNamed!(() => offered++);
  expect([take(), offered]).toEqual([[['named', id(2)]], 1]);
});
