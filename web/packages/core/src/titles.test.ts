/** Several players of one page, and several titles. */

import { expect, test } from 'vitest';
import { manifest, setUp } from './testing/client.ts';
import { settle } from './testing/clock.ts';

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
