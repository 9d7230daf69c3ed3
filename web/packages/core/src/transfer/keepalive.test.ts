import { expect, it } from 'vitest';
import { FakeClock } from '../testing/clock.ts';
import { createKeepalive } from './keepalive.ts';

const setUp = () => {
  const clock = new FakeClock();
  const did: string[] = [];
  const keepalive = createKeepalive(
    clock,
    () => did.push('ping'),
    () => did.push('over'),
  );
  return { clock, did, keepalive };
};

it('a link without the hello is over after two rounds, whatever comes', async () => {
  const { clock, did, keepalive } = setUp();
  await clock.advance(9_999);
  keepalive.heard();
  expect(did).toEqual([]);
  await clock.advance(1);
  expect(did).toEqual(['over']);
  keepalive.stop();
  expect(clock.pending).toBe(0);
});

it('a silent link is pinged each round and over after four', async () => {
  const { clock, did, keepalive } = setUp();
  keepalive.meet();
  keepalive.said();
  await clock.advance(5_000);
  expect(did).toEqual([]);
  await clock.advance(10_000);
  expect(did).toEqual(['ping', 'ping']);
  await clock.advance(5_000);
  expect(did).toEqual(['ping', 'ping', 'over']);
  keepalive.stop();
});

it('a link that is heard is pinged where this side has said nothing, and is not over', async () => {
  const { clock, did, keepalive } = setUp();
  keepalive.meet();
  for (let round = 0; round < 8; round++) {
    keepalive.heard();
    if (round % 2) keepalive.said();
    await clock.advance(5_000);
  }
  expect(did).toEqual(['ping', 'ping', 'ping', 'ping']);
  keepalive.stop();
});
