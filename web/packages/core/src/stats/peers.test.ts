import { expect, test } from 'vitest';
import { createPeerStats } from './peers.ts';

const [first, second] = ['01'.repeat(16), '02'.repeat(16)] as const;

test('figures of single peers, by path, since the last time', () => {
  const said = createPeerStats();
  said.received(first, 'direct', 5);
  said.received(first, 'direct', 6);
  said.received(first, 'relay', 7);
  said.sent(second, 'direct', 8);
  said.sent(second, 'relay', 9);
  said.blamed(second);
  expect(said.take()).toEqual({
    AQEBAQEBAQEBAQEBAQEBAQ: { in: 11, relay_in: 7 },
    AgICAgICAgICAgICAgICAg: { out: 8, relay_out: 9, blame: 1 },
  });
  expect(said.take()).toEqual({});
});

test('a report speaks of 64 peers at most', () => {
  const said = createPeerStats();
  for (let n = 0; n < 70; n++) said.sent(n.toString(16).padStart(32, '0'), 'direct', 1);
  expect(Object.keys(said.take())).toHaveLength(64);
});
