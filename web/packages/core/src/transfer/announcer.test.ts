import { expect, it } from 'vitest';
import type { HaveEntry } from '../protocol/peer.ts';
import { FakeClock } from '../testing/clock.ts';
import { createAnnouncer } from './announcer.ts';

const setUp = () => {
  const clock = new FakeClock();
  const held = new Map<string, number>();
  const said: HaveEntry[][] = [];
  const announcer = createAnnouncer(
    clock,
    (segment) => (held.has(segment) ? { segment, state: 2, pieces: held.get(segment)! } : undefined),
    (entries) => said.push(entries),
  );
  return { clock, held, said, announcer };
};

it('says the first change at once and what changes after it together, 50 ms later', async () => {
  const { clock, held, said, announcer } = setUp();
  for (const [n, segment] of ['a', 'b', 'c', 'b'].entries()) {
    held.set(segment, n);
    announcer.tell(segment);
  }
  expect(said).toEqual([[{ segment: 'a', state: 2, pieces: 0 }]]);
  await clock.advance(49);
  expect(said.length).toBe(1);
  await clock.advance(1);
  // Each once, as it is now.
  expect(said[1]).toEqual([
    { segment: 'b', state: 2, pieces: 3 },
    { segment: 'c', state: 2, pieces: 2 },
  ]);
  await clock.advance(1_000);
  expect([said.length, clock.pending]).toEqual([2, 0]);
});

it('takes back what it has announced, and nothing else', () => {
  const { held, said, announcer } = setUp();
  held.set('a', 1);
  announcer.add('a');
  announcer.said('greeted');
  announcer.add('never');
  announcer.flush();
  expect(said.splice(0)).toEqual([
    [
      { segment: 'a', state: 2, pieces: 1 },
      { segment: 'greeted', state: 0, pieces: 0 },
    ],
  ]);
  held.clear();
  for (const segment of ['a', 'greeted', 'never']) announcer.add(segment);
  announcer.flush();
  expect(said).toEqual([[{ segment: 'a', state: 0, pieces: 0 }]]);
  announcer.stop();
});

it('says many in messages of 255', () => {
  const { held, said, announcer } = setUp();
  for (let n = 0; n < 600; n++) {
    held.set(`${n}`, 1);
    announcer.add(`${n}`);
  }
  announcer.flush();
  expect(said.map(({ length }) => length)).toEqual([255, 255, 90]);
  announcer.stop();
});

it('that has stopped says no more', async () => {
  const { clock, held, said, announcer } = setUp();
  held.set('a', 1);
  announcer.tell('a');
  announcer.tell('a');
  announcer.stop();
  await clock.advance(1_000);
  expect([said.length, clock.pending]).toEqual([1, 0]);
});
