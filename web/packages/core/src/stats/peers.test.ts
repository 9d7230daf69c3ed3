import { expect, test } from 'vitest';
import { createPeerStats } from './peers.ts';

const [first, second] = ['01'.repeat(16), '02'.repeat(16)] as const;

test('figures of single peers, by path, since the last time', () => {
  const said = createPeerStats();
  said.moved(first, 'in', 'direct', 5);
  said.moved(first, 'in', 'direct', 6);
  said.moved(first, 'in', 'relay', 7);
  said.moved(second, 'out', 'direct', 8);
  said.moved(second, 'out', 'relay', 9);
  said.blamed(second);
  expect(said.take()).toEqual({
    [first]: { in: 11, relay_in: 7 },
    [second]: { out: 8, relay_out: 9, blame: 1 },
  });
  expect(said.take()).toEqual({});
});

test('a report speaks of 64 peers at most', () => {
  const said = createPeerStats();
  for (let n = 0; n < 70; n++) said.moved(n.toString(16).padStart(32, '0'), 'out', 'direct', 1);
  expect(Object.keys(said.take())).toHaveLength(64);
});
