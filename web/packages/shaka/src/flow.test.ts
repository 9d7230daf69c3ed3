import { expect, test, vi } from 'vitest';
import { createFlow } from './flow.ts';

const data = Uint8Array.of(0, 1, 2, 3, 4, 5, 6, 7, 8, 9);

/** What was given, byte by byte; `release` has one more of the takes that wait end. */
function setUp() {
  const given: number[] = [];
  const waiting: (() => void)[] = [];
  const flow = createFlow((bytes) => {
    given.push(...bytes);
    return new Promise<void>((resolve) => waiting.push(resolve));
  });
  const release = () => vi.waitFor(() => waiting.shift()!());
  return { flow, given, release };
}

test('each byte is given once, though a second fetch begins anew', async () => {
  const { flow, given, release } = setUp();
  const first = flow.fetch();
  void first(data.subarray(0, 4));
  await release();
  const second = flow.fetch();
  void second(data.subarray(0, 3));
  void second(data.subarray(3, 7));
  await release();
  expect(given).toEqual([0, 1, 2, 3, 4, 5, 6]);
  const end = flow.end(data.slice().buffer);
  await release();
  await end;
  // The first one was given up, and says so late.
  void first(data.subarray(4, 8));
  expect(given).toEqual([...data]);
});

test('the next bytes wait until those before are taken, and the end until all are', async () => {
  const { flow, given, release } = setUp();
  const take = flow.fetch();
  void take(data.subarray(0, 5));
  void take(data.subarray(5, 8));
  const ended = vi.fn();
  const end = flow.end(data.slice().buffer).then(ended);
  await Promise.resolve();
  expect(given).toEqual([0, 1, 2, 3, 4]);
  await release();
  await release();
  expect(ended).not.toHaveBeenCalled();
  await release();
  await end;
  expect(given).toEqual([...data]);
});

test('a segment of which nothing was given is left to Shaka', async () => {
  const { flow, given } = setUp();
  await flow.end(data.slice().buffer);
  expect(given).toEqual([]);
});

test('what cannot be appended does not keep the segment', async () => {
  const flow = createFlow(() => Promise.reject(new Error('destroyed')));
  const take = flow.fetch();
  await take(data.subarray(0, 4));
  await flow.end(data.slice().buffer);
});
