import { expect, test } from 'vitest';
import { FakeClock } from '../testing/clock.ts';
import { createOutbox } from './outbox.ts';

test('an outbox keeps the rate, and leaves room for its own words beside signals', async () => {
  const clock = new FakeClock();
  const sent: string[] = [];
  const outbox = createOutbox(clock, (text) => sent.push(text));
  outbox.limit(11);
  for (let i = 0; i < 20; i++) outbox.put('signal', true);
  expect(sent.length).toBe(6);
  for (let i = 0; i < 5; i++) outbox.put('own', false);
  expect(sent.filter((text) => text === 'own').length).toBe(4);
  await clock.advance(1_000);
  expect(sent.length).toBe(16);
  outbox.exhaust();
  outbox.put('own', false);
  expect(sent.length).toBe(16);
  outbox.rush();
  expect(sent.length).toBe(26);
  outbox.clear();
  await clock.advance(5_000);
  expect(sent.length).toBe(26);
});

test('what is too much is dropped', () => {
  const outbox = createOutbox(new FakeClock(), () => {});
  for (let i = 0; i < 500; i++) expect(outbox.put('own', false)).toBe(true);
  expect(outbox.put('own', false)).toBe(false);
});
