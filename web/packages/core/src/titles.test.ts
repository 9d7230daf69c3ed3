/** Several players of one page, and several titles. */

import { expect, test } from 'vitest';
import { manifest, setUp } from './testing/client.ts';
import { settle } from './testing/clock.ts';
import { description } from './testing/connection.ts';
import { peerA, swarm } from './testing/socket.ts';

test.each([
  ['the next film', manifest.replace('film', 'next'), true],
  ['the same film in a second player', manifest, false],
])('a hidden page whose player has ended, and that goes on with %s, keeps its links', async (_, next, closes) => {
  const { leeway, enter, joined, sent, clock } = setUp({}, { hidden: () => true });
  leeway.start();
  const playback = leeway.open(manifest);
  await enter();
  await joined();
  playback.setPaused(true);
  await clock.advance(30_000);
  if (closes) playback.close();
  leeway.open(next);
  await settle();
  if (closes) await joined();
  await clock.advance(40_000);
  expect(sent('update').at(-1)).toMatchObject({ want: 8, saturated: false });
  leeway.stop();
});

test('an offer to a page with two titles of one swarm is answered once', async () => {
  const { leeway, enter, joined, sent, tracker, connections, clock } = setUp();
  leeway.start();
  leeway.open(manifest);
  await enter();
  await joined();
  // Each viewer of the site has a token of its own in the URL, or each player.
  leeway.open(manifest.replace('master', 'preview'));
  await clock.advance(6_000);
  await joined();
  await clock.advance(6_000);
  const before = connections.length;
  const plan = { v: 1, data: 2, message: 16_384 };
  const link = 'AAAAAAAAAAAAAAAAAAAADQ';
  const head = { type: 'signal', swarm, from: peerA, role: 'viewer', link };
  tracker.last.say({ ...head, kind: 'offer', sdp: description, plan });
  await settle();
  expect(sent('signal').filter(({ kind }) => kind === 'answer')).toHaveLength(1);
  expect(connections).toHaveLength(before + 1);
  // The rest of it finds the title that has answered.
  tracker.last.say({ ...head, kind: 'fail', reason: 'gone' });
  await settle();
  expect(connections.at(-1)!.closed).toBe(true);
  leeway.stop();
});
