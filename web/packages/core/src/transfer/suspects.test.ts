import { expect, it } from 'vitest';
import type { Certificate } from '../certificate/index.ts';
import type { Message } from '../protocol/peer.ts';
import { FakeClock } from '../testing/clock.ts';
import type { Download } from './downloads.ts';
import type { Peer } from './ports.ts';
import { createSuspects } from './suspects.ts';

const segment = 'a'.repeat(32);
const certificate = (content: number) =>
  ({ length: 1, objectLength: 1, digests: new Uint8Array(32).fill(content), validator: '' }) as unknown as Certificate;

const setUp = () => {
  const clock = new FakeClock();
  const did: unknown[] = [];
  const peer = {
    supply: { stalledUntilUs: 0, cancel: () => did.push('cancel') },
    send: (m: Message) => did.push(m.type),
    drop: (...why: unknown[]) => did.push(['drop', ...why]),
  } as unknown as Peer;
  // A piece is right under a certificate of its own content.
  const suspects = createSuspects(clock, async (c, n, data) => n === 3 && c.digests[0] === data[0]);
  suspects.suspect(peer, { segment, piece: 3, data: new Uint8Array([7]) } as Download);
  return { clock, did, peer, suspects };
};

it('a suspect is asked for its certificate and for nothing else, and dropped if it does not answer', async () => {
  const { clock, did, peer, suspects } = setUp();
  expect(did.splice(0)).toEqual(['cancel', 'certificate-request']);
  expect(peer.supply.stalledUntilUs).toBe(Number.MAX_SAFE_INTEGER);
  expect([suspects.has(peer), suspects.of(peer, segment), suspects.of(peer, 'b')]).toEqual([true, true, false]);
  await clock.advance(999);
  expect(did).toEqual([]);
  await clock.advance(1);
  expect(did).toEqual([['drop', 'bad-piece', expect.any(Number), true]]);
  expect([suspects.has(peer), clock.pending]).toEqual([false, 0]);
});

it('a suspect is cleared by a certificate of another content under which its piece is right', async () => {
  const { clock, did, peer, suspects } = setUp();
  did.splice(0);
  expect(await suspects.answer(peer, certificate(7), certificate(1))).toBe(true);
  expect([suspects.has(peer), peer.supply.stalledUntilUs, clock.pending, did]).toEqual([false, 0, 0, []]);
});

it.each([
  ['none', undefined, certificate(1)],
  ['one under which its piece is wrong', certificate(8), certificate(1)],
  ['the one that is held', certificate(7), certificate(7)],
  ['one where none is held any more', certificate(7), undefined],
])('a suspect that shows %s is dropped', async (_, shown, held) => {
  const { clock, did, peer, suspects } = setUp();
  did.splice(0);
  expect(await suspects.answer(peer, shown, held)).toBe(false);
  expect(did).toEqual([['drop', 'bad-piece', expect.any(Number), true]]);
  expect(clock.pending).toBe(0);
});

it('a suspect that is gone is not dropped later', async () => {
  const { clock, did, peer, suspects } = setUp();
  did.splice(0);
  suspects.acquit(peer);
  await clock.advance(5_000);
  expect([did, clock.pending]).toEqual([[], 0]);
});
