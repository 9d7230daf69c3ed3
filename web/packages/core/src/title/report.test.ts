import { expect, it } from 'vitest';
import type { PeersDelta, StatsDelta } from '../ports.ts';
import { createReport } from './report.ts';

it('tells of single peers by their IDs as the tracker spells them, and adds what players saw to what the engine counts', () => {
  let now = 0;
  const report = createReport(() => now);
  const peer = 'fb'.repeat(16);
  const delta = { peers: { [peer]: { in: 7, blame: 1 } }, disputes: 2 } as unknown as StatsDelta & PeersDelta;
  report.observe({ stalls: 1 });
  report.stats.add('disputes', 1);
  now = 1_000;
  expect(report.take({ takeStats: () => delta })).toMatchObject({
    interval_ms: 1_000,
    stalls: 1,
    disputes: 3,
    peers: { '-_v7-_v7-_v7-_v7-_v7-w': { in: 7, blame: 1 } },
  });
  // What has been told is not told again, and no engine knows no peers.
  expect(report.take(undefined)).toMatchObject({ disputes: 0 });
  expect(report.take(undefined)).not.toHaveProperty('peers');
});
