/** Chunks of segments that are being made: no playlist lists them, the player says what it expects. */
import { expect, it } from 'vitest';
import { pieceCount } from '../segment/segment.ts';
import type { Act } from './act.ts';
import { judged } from './arrive.ts';
import { Node } from './parts.ts';
import { turns } from './shelf.ts';

const id = (n: number) => n.toString(16).padStart(2, '0').padEnd(32, '0');
const [seed, other, stream] = [id(0xff), id(2), id(1)];
const length = 20_000;
const end = turns - 1;
/** What certificates say, by their one byte. */
const names = ['s#0-19999', 's#20000-39999', 's#30000-49999', 's'];

/** A viewer whose player asks for chunk 0 of segment 0. All stripes are fed by another viewer. */
const setUp = () => {
  const node = new Node(id(1));
  for (const peer of [seed, other]) node.linked(peer, peer === seed);
  const s = node.follow(0, stream, { slots: 8, part: 500_000 });
  for (const peer of [seed, other]) node.heard(0, peer, { type: 'follow', stream, on: true });
  const expects = (turn: number, begin: string) => s.expect(1, turn, (name) => name.startsWith(begin), turn !== end);
  expects(0, 's#0-');
  for (let stripe = 0; stripe < 4; stripe++)
    node.heard(1, other, { type: 'place', stream, stripe, rank: 0, path: [other], room: 4, least: 255 });
  const tells = (from: string, push: number, turn: number, of: number) =>
    node.heard(2, from, { type: 'part', stream, push, turn, certificate: new Uint8Array([of]) });
  /** Answers what is asked, and returns what was said of peers. */
  const settle = () => {
    const all: Act[] = [];
    for (let acts = node.take(); acts.length; acts = node.take())
      for (const a of acts) {
        all.push(a);
        if (a.do !== 'verify') continue;
        const of = a.raw[0]!;
        const digests = new Uint8Array(32 * pieceCount(length));
        judged(node, 2, a, { segment: id(100 + of), name: names[of]!, length, digests, raw: a.raw, alg: 1 });
      }
    return all.flatMap((a) => (a.do === 'blame' ? [a] : []));
  };
  settle();
  const nameAt = (turn: number) => s.shelf.parts.get(turn)?.content?.name;
  return { s, expects, tells, settle, nameAt };
};

it('what a viewer tells is taken where it fits, once the player is there', () => {
  const { expects, tells, settle, nameAt } = setUp();
  tells(other, 0, 0, 0);
  tells(other, 1, 1, 1);
  tells(other, 2, end, 3);
  expect(settle()).toEqual([]);
  expect([0, 1, end].map(nameAt)).toEqual(['s#0-19999', undefined, undefined]);
  expects(1, 's#20000-');
  expects(end, 's');
  expect(settle()).toEqual([]);
  expect([0, 1, end].map(nameAt)).toEqual(['s#0-19999', 's#20000-39999', 's']);
});

it.each([false, true])('a viewer that tells another chunk there lies; it was expected before: %s', (before) => {
  const { expects, tells, settle, nameAt } = setUp();
  if (before) expects(1, 's#20000-');
  tells(other, 0, 1, 2);
  if (!before) expects(1, 's#20000-');
  expect(settle()).toMatchObject([{ from: other, why: 'unsolicited' }]);
  expect(nameAt(1)).toBeUndefined();
});

it('what a seed has told is forgotten where it does not fit, and nothing is held against the seed', () => {
  const { expects, tells, settle, nameAt } = setUp();
  tells(seed, 0, 1, 2);
  expect(settle()).toEqual([]);
  expect(nameAt(1)).toBe('s#30000-49999');
  expects(1, 's#20000-');
  expect(nameAt(1)).toBeUndefined();
  tells(other, 0, 1, 1);
  expect(settle()).toEqual([]);
  expect(nameAt(1)).toBe('s#20000-39999');
});

it('what was told and never expected is no lie: the player may have had the segment otherwise', () => {
  const { expects, tells, settle } = setUp();
  for (let n = 1; n < 5; n++) tells(other, n, n, n % names.length);
  expects(turns, 's#0-');
  expect(settle()).toEqual([]);
});
