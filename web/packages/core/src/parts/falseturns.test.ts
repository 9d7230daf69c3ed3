import { expect, it } from 'vitest';
import { pushedId } from '../protocol/parts.ts';
import { pieceCount, pieceLength } from '../segment/segment.ts';
import type { Act } from './act.ts';
import { judged } from './arrive.ts';
import { Node } from './parts.ts';
import { ahead, grace, kept, turns } from './shelf.ts';

const id = (n: number) => n.toString(16).padStart(2, '0').padEnd(32, '0');
const [seed, other, third, stream] = [id(0xff), id(2), id(3), id(1)];
const length = 60_000;
/** What certifies part n, wherever it is told. */
const raw = (n: number) => new Uint8Array([n]);

/** A viewer whose playlist lists part 0, with a seed and two other viewers; it subscribes to those of them that feed its stripes. */
const setUp = (feed: string[]) => {
  const node = new Node(id(1));
  for (const peer of [seed, other, third]) node.linked(peer, peer === seed);
  const s = node.follow(0, stream, { slots: 8, part: 500_000 });
  for (const peer of [seed, other, third]) node.heard(0, peer, { type: 'follow', stream, on: true });
  const list = (turn: number, at = 1) => s.listed(at, turn, id(100 + turn), length);
  list(0);
  for (const [stripe, to] of feed.entries())
    node.heard(1, to, { type: 'place', stream, stripe, rank: 0, path: [to], room: 4, least: 255 });
  const tells = (from: string, push: number, turn: number, of: number) =>
    node.heard(2, from, { type: 'part', stream, push, turn, certificate: raw(of) });
  const sends = (from: string, push: number, piece: number) => {
    const payload = new Uint8Array(pieceLength(length, piece));
    node.data(2, from, { type: 'data', request: pushedId(push, piece), offset: 0, sentAt: 0, payload });
  };
  /** Answers what is asked, and returns all that was to be done. */
  const settle = (at = 2) => {
    const all: Act[] = [];
    for (let acts = node.take(); acts.length; acts = node.take())
      for (const a of acts) {
        all.push(a);
        const digests = new Uint8Array(32 * pieceCount(length));
        if (a.do === 'verify')
          judged(node, at, a, { segment: id(100 + a.raw[0]!), length, digests, raw: a.raw, alg: 1 });
        if (a.do === 'check') node.checked(at, a, true);
      }
    return all;
  };
  settle();
  return { node, s, list, tells, sends, settle };
};

const blamed = (acts: Act[]) => acts.flatMap((a) => (a.do === 'blame' ? [a] : []));

it.each([seed, third])('a false turn takes no place of the part that %s tells there', (honest) => {
  const { s, list, tells, settle } = setUp([other, third, other, third]);
  for (let i = 0; i < kept; i++) tells(other, i, 1 + i, 100 + i);
  const acts = settle();
  tells(honest, 0, 1, 1);
  acts.push(...settle());
  list(1);
  acts.push(...settle());
  expect(s.shelf.parts.get(1)).toMatchObject({ named: id(101), content: { segment: id(101) } });
  expect(blamed(acts)).toMatchObject([{ from: other, why: 'unsolicited' }]);
});

it.each([
  ['is not listed', 1, [], false, 0],
  ['is listed', 1, [1], true, 0],
  ['is listed as another', 2, [1], false, 16_384],
  ['is passed', 1, [2], false, 16_384],
  ['is passed by a leap', 1, [3 * turns], false, 0],
])('what a viewer tells at a turn that %s', (_what, of, lists, takes, charged) => {
  const { s, list, tells, sends, settle } = setUp([other, other, other, other]);
  tells(other, 0, 1, of);
  sends(other, 0, 0);
  expect(settle()).toEqual([]);
  for (const turn of lists) list(turn);
  const bytes = blamed(settle()).reduce((sum, a) => sum + a.bytes, 0);
  expect(!!s.shelf.parts.get(1)?.pieces[0]?.data).toBe(takes);
  expect(charged ? bytes >= charged : !bytes).toBe(true);
});

it.each([
  [seed, other],
  [other, seed],
])('what a seed has told a viewer may tell before it is listed: %s, %s', (...both) => {
  const { s, tells, sends, settle } = setUp([other, other, other, other]);
  for (const from of both) tells(from, 0, 1, 1);
  sends(other, 0, 0);
  expect(blamed(settle())).toEqual([]);
  expect(s.shelf.parts.get(1)!.pieces[0]!.data).toBeDefined();
});

it('what waits of a stream that is left takes no place of what comes when it is followed again', () => {
  const { node, tells, sends, settle } = setUp([other, other, other, other]);
  for (let push = 0; push < 12; push++) {
    tells(other, push, 1 + push, 1 + push);
    sends(other, push, 0);
  }
  node.unfollow(2, stream);
  const s = node.follow(2, stream, { slots: 8, part: 500_000 });
  s.listed(2, 0, id(100), length);
  for (let stripe = 0; stripe < 4; stripe++)
    node.heard(2, other, { type: 'place', stream, stripe, rank: 0, path: [other], room: 4, least: 255 });
  settle();
  for (let push = 20; push < 30; push++) {
    tells(other, push, push, push);
    sends(other, push, 0);
  }
  expect(blamed(settle())).toEqual([]);
});

it.each([
  ['too far ahead', other, (ahead + 1) * turns, false, 3],
  ['too far ahead, data first', other, (ahead + 1) * turns, true, 3],
  ['long past', other, 2 ** 32 - 1, false, 3],
  ['of a seed, that others may', seed, (ahead + 1) * turns, false, 0],
])('a part far from the playlist is charged in whole: %s', (_what, from, turn, before, pieces) => {
  const { tells, sends, settle } = setUp([from, from, from, from]);
  const push = () => [0, 1, 2].forEach((piece) => void sends(from, 0, piece));
  if (before) push();
  tells(from, 0, turn, 1);
  if (!before) push();
  const bytes = blamed(settle()).reduce((sum, a) => sum + a.bytes, 0);
  expect(bytes).toBe(1 + pieces * 16_384);
});

it.each([
  ['by its own word', (stripe: number) => ({ type: 'unsubscribe', stream, stripe }) as const],
  ['with the stream', () => ({ type: 'follow', stream, on: false }) as const],
] as const)('a child that has left is sent nothing of what waited for it: %s', (_what, says) => {
  const { node, tells, sends, settle } = setUp([seed, seed, seed, seed]);
  tells(seed, 0, 1, 1);
  settle();
  for (let stripe = 0; stripe < 4; stripe++) node.heard(2, other, { type: 'subscribe', stream, stripe, slots: 1 });
  for (let piece = 0; piece < 4; piece++) sends(seed, 0, piece);
  const pushes = () => settle().filter((a) => a.do === 'push').length;
  expect(pushes()).toBe(2);
  for (let stripe = 0; stripe < 4; stripe++) node.heard(2, other, says(stripe));
  node.sent(2, other);
  node.sent(2, other);
  expect(pushes()).toBe(0);
  expect(node.links.get(other)!.out).toMatchObject({ waiting: [], waits: 0 });
});

it.each([
  false,
  true,
])('nothing more is pushed of a part once a side has left the stream and follows it again; the child: %s', (child) => {
  const { node, tells, sends, settle } = setUp([seed, seed, seed, seed]);
  const feeds = (push: number, turn: number, pieces: number[]) => {
    for (let stripe = 0; stripe < 4; stripe++)
      node.heard(2, seed, { type: 'place', stream, stripe, rank: 0, path: [seed], room: 4, least: 255 });
    tells(seed, push, turn, turn);
    settle();
    for (let stripe = 0; stripe < 4; stripe++) node.heard(2, other, { type: 'subscribe', stream, stripe, slots: 1 });
    for (const piece of pieces) sends(seed, push, piece);
    let pushes = 0;
    for (let n = 1; n; pushes += n) {
      node.sent(2, other);
      node.sent(2, other);
      n = settle().filter((a) => a.do === 'push').length;
    }
    return pushes;
  };
  expect(feeds(0, 1, [0, 1])).toBe(2);
  if (child) {
    for (const on of [false, true]) node.heard(2, other, { type: 'follow', stream, on });
  } else {
    node.unfollow(2, stream);
    node.follow(2, stream, { slots: 8, part: 500_000 }).listed(2, 0, id(100), length);
  }
  const rest = child ? feeds(0, 1, [2, 3]) : feeds(1, 1, [0, 1, 2, 3]);
  expect([rest, feeds(2, 2, [0, 1, 2, 3])]).toEqual([0, 4]);
});

// The piece is of stripe 1.
it.each([
  ['of a stripe that was subscribed to', [other, other, other, other], 0],
  ['of one that was not', [other, third, other, other], 16_384],
])('what waited is held against the time of its push, whatever has ended since: %s', (_what, feed, charged) => {
  const { node, s, list, tells, sends, settle } = setUp(feed);
  tells(other, 0, 1, 1);
  sends(other, 0, 0);
  for (let stripe = 0; stripe < 4; stripe++) {
    node.heard(3, other, { type: 'end', stream, stripe });
    // It is not subscribed to again.
    node.heard(3, other, { type: 'place', stream, stripe, rank: 0, path: [other], room: 0, least: 255 });
  }
  node.tick(4 + grace);
  list(1, 4 + grace);
  const bytes = blamed(settle(4 + grace)).reduce((sum, a) => sum + a.bytes, 0);
  expect([bytes, !!s.shelf.parts.get(1)!.pieces[0]!.data]).toEqual([charged, !charged]);
});
