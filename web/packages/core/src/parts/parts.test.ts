import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type PartsMessage, pushedId } from '../protocol/parts.ts';
import { pieceLength } from '../segment/segment.ts';
import { judged } from './arrive.ts';
import { type Link, mostPushes } from './link.ts';
import { Node } from './parts.ts';
import { backlog, kept, maxPart, maxStreams } from './shelf.ts';

const id = (n: number) => n.toString(16).padStart(2, '0').padEnd(32, '0');
const [seed, other, stream] = [id(0xff), id(2), id(1)];
const length = 60_000;

const small = fc.nat(255);
const stripe = fc.nat(3);
const streams = fc.constantFrom(stream, stream, stream, id(3), id(4));
const said: fc.Arbitrary<PartsMessage> = fc.oneof(
  fc.record({ type: fc.constant('follow'), stream: small.map((n) => id(3 + n)), on: fc.boolean() }),
  fc.record({
    type: fc.constant('place'),
    stream: streams,
    stripe,
    rank: fc.nat(3),
    room: small,
    least: small,
    path: fc.constantFrom([seed], [other], [seed, other], [seed, id(1)]),
  }),
  fc.record({ type: fc.constantFrom('unsubscribe', 'end'), stream: streams, stripe }),
  fc.record({ type: fc.constant('enough'), stream: streams, segment: small.map(id) }),
  fc.record({ type: fc.constant('hold'), stream: streams, on: fc.boolean() }),
) as fc.Arbitrary<PartsMessage>;

const subscribe = fc.record({ type: fc.constant('subscribe'), stream: fc.constant(stream), stripe, slots: small });
const follow = fc.record({ type: fc.constant('follow'), stream: small.map((n) => id(3 + n)), on: fc.constant(true) });

/** A certificate is true if its first byte is the turn. */
const announcement = fc
  .record({ turn: fc.oneof(fc.nat(40), fc.nat(200)), push: fc.oneof(fc.nat(40), fc.nat(200)), truth: fc.nat(3) })
  .map(({ turn, push, truth }): PartsMessage => {
    return { type: 'part', stream, push, turn, certificate: new Uint8Array([truth ? turn : 255]) };
  });

const event = fc.record({
  from: fc.constantFrom(seed, other),
  after: fc.nat(5_000),
  does: fc.oneof(
    { weight: 3, arbitrary: said.map((heard) => ({ heard })) },
    { weight: 2, arbitrary: subscribe.map((heard) => ({ heard: heard as PartsMessage })) },
    { weight: 1, arbitrary: follow.map((heard) => ({ heard: heard as PartsMessage })) },
    { weight: 12, arbitrary: announcement.map((heard) => ({ heard })) },
    {
      weight: 12,
      arbitrary: fc.record({ push: fc.oneof(fc.nat(5), fc.nat(99)), piece: fc.nat(4), half: fc.boolean() }),
    },
    { weight: 1, arbitrary: fc.record({ listed: fc.nat(40) }) },
    {
      weight: 1,
      arbitrary: fc.constantFrom('ticks' as const, 'ticks' as const, 'ticks' as const, 'relinked' as const),
    },
  ),
});

/** What is held of a peer, and what it may be. */
const bounds = (l: Link): [number, number][] => {
  const sum = (of: { length: number }[]) => of.reduce((n, x) => n + x.length, 0);
  return [
    [l.pushes.size, mostPushes],
    [l.out.told.size, mostPushes],
    [l.early.length, 16],
    [sum(l.early.flatMap((e) => e.data.map((d) => d.payload))), 4 * backlog],
    [l.open.length, 16],
    [l.follows.size, maxStreams],
    [l.held.size, maxStreams],
    [l.subscribed.size, 4 * maxStreams],
    [l.out.handed.length, 2],
    [l.out.waits, sum(l.out.waiting.map((q) => q.data))],
    [l.out.waits, backlog + maxPart],
  ];
};

test('what is held of peers that say and send what they like stays within its bounds', () => {
  fc.assert(
    fc.property(fc.array(event, { minLength: 200, maxLength: 300 }), (events) => {
      const node = new Node(id(1));
      node.linked(seed, true);
      node.linked(other, false);
      const s = node.follow(0, stream, { slots: 8, part: 500_000 });
      for (const from of [seed, other]) node.heard(0, from, { type: 'follow', stream, on: true });
      s.listed(0, 20, id(120), length);
      for (const from of [seed, other])
        for (let stripe = 0; stripe < 4; stripe++) {
          node.heard(0, from, { type: 'place', stream, stripe, rank: 0, path: [seed], room: 4, least: 255 });
          node.heard(0, from, { type: 'subscribe', stream, stripe, slots: 9 });
        }
      let now = 0;
      for (const { from, after, does } of events) {
        now += after;
        if (does === 'ticks') node.tick(now);
        else if (does === 'relinked') {
          node.gone(now, from);
          node.linked(from, from === seed);
        } else if ('heard' in does) node.heard(now, from, does.heard);
        else if ('listed' in does) {
          s.listed(now, does.listed, id(100 + does.listed), length);
          s.ask(now, does.listed, { deadline: now + 1_000_000, rtt: 100_000, rate: 1_000_000, packaged: true });
        } else {
          const request = pushedId(does.push, does.piece);
          const payload = new Uint8Array(pieceLength(length, does.piece) / (does.half ? 2 : 1));
          node.data(now, from, { type: 'data', request, offset: 0, sentAt: 0, payload });
        }
        for (let acts = node.take(); acts.length; acts = node.take())
          for (const a of acts) {
            if (a.do === 'verify' && a.raw[0] === a.turn) {
              const digests = new Uint8Array(32 * Math.ceil(length / 16_384));
              judged(node, now, a, { segment: id(100 + a.turn), length, digests, raw: a.raw, alg: 1 });
            } else if (a.do === 'verify') judged(node, now, a);
            // The last piece is wrong.
            else if (a.do === 'check') node.checked(now, a, a.piece < 3);
            else if (a.do === 'push') expect(a.data.length).toBeLessThanOrEqual(16_384);
          }
        const all: [number, number][] = [...node.links.values()].flatMap(bounds);
        all.push([s.shelf.parts.size, 2 * kept + 1], [node.next(now), now + 100_000]);
        if (all.some(([held, most]) => held > most)) expect(all).toEqual('within its bounds');
      }
    }),
    { numRuns: 30 },
  );
});

test('what a peer has told this side to hold ends with the stream: the peer forgets it when it hears that this side has left', () => {
  const node = new Node(id(1));
  node.linked(other, false);
  const follow = () => node.follow(0, stream, { slots: 8, part: 500_000 });
  const hold = () => node.heard(0, other, { type: 'hold', stream, on: true });
  const held = () => node.links.get(other)!.held.size;
  follow();
  node.heard(0, other, { type: 'follow', stream, on: true });
  hold();
  expect(held()).toBe(1);
  node.unfollow(0, stream);
  hold(); // was on its way
  follow();
  expect(held()).toBe(0);
});

test('of a part that is too long nothing is held: a playlist may name a range of any length', () => {
  const s = new Node(id(1)).follow(0, stream, { slots: 8, part: 500_000 });
  s.listed(0, 20, id(120), maxPart);
  s.listed(0, 21, id(121), maxPart + 1);
  s.listed(0, 22, id(122), 64 << 20);
  expect([20, 21, 22].map((turn) => s.shelf.part(turn).pieces.length)).toEqual([192, 0, 0]);
});

test('the end of a segment of chunks may be longer than what is pushed', () => {
  const file = new URL('../../../../../spec/vectors/parts.json', import.meta.url);
  const { lengths } = JSON.parse(readFileSync(file, 'utf8')) as {
    lengths: { turn: number; length: number; taken: boolean }[];
  };
  expect(lengths.length).toBeGreaterThan(0);
  for (const { turn, length, taken } of lengths) {
    const s = new Node(id(1)).follow(0, stream, { slots: 8, part: 500_000 });
    s.listed(0, turn - 1, id(120), 0);
    const digests = new Uint8Array(32 * Math.ceil(length / 16_384));
    const ok = s.certified(0, turn, { segment: id(121), length, digests, raw: new Uint8Array(1), alg: 1 });
    expect([turn, length, ok]).toEqual([turn, length, taken]);
  }
});
