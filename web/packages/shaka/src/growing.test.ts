import { expect, test, vi } from 'vitest';
import { settle } from '../../hlsjs/src/testing.ts';
import { bytes, loading, shaka } from './testing.ts';

/** A live segment that Shaka asks for, and what it has appended of it. The origin's answer is the test's. */
async function setUp(kind: 'live' | 'event' = 'live') {
  const { player, load, asked, playback, origin } = await loading();
  player[kind] = true;
  const taken: number[] = [];
  const whole = origin.hold();
  const { promise } = load({}, { streamDataCallback: async (some) => void taken.push(...some) });
  await asked();
  const { request } = playback;
  const sends = async (...some: number[]) => {
    playback.fromOrigin();
    (await whole.next).answer.write(Buffer.from(some));
  };
  const ends = (...all: number[]) => {
    playback.resolve({ data: Uint8Array.from(all).buffer, source: 'peer', bytes: bytes(1, all.length - 1) });
    return promise;
  };
  const took = (...some: number[]) => vi.waitFor(() => expect(taken).toEqual(some));
  return { request: request!, growing: request!.growing!, origin, taken, sends, ends, took };
}

test.each([
  'live',
  'event',
] as const)('Shaka gets the bytes as the origin sends them, and at the end those that peers have sent: %s', async (kind) => {
  const { request, origin, taken, sends, ends, took } = await setUp(kind);
  await sends(1, 2, 3);
  await took(1, 2, 3);
  // A part is of the middle.
  const part = origin.hold();
  const fetched = request.origin(new AbortController().signal, () => {}, { first: 4, last: 4 });
  (await part.next).answer.writeHead(206).end(Buffer.of(5));
  await fetched;
  expect((await ends(1, 2, 3, 4, 5)).data.byteLength).toBe(5);
  expect(taken).toEqual([1, 2, 3, 4, 5]);
});

test('Shaka gets chunks of peers, and goes on with what the origin sends, of which the core hears', async () => {
  const { growing, taken, sends, ends, took } = await setUp();
  growing.give(Uint8Array.of(1, 2), 0);
  growing.give(Uint8Array.of(3), 2);
  await took(1, 2, 3);
  const heard: number[] = [];
  growing.heard = (some, unshared) => void heard.push(...some, +unshared);
  await sends(1, 2, 3, 4);
  await took(1, 2, 3, 4);
  expect(heard).toEqual([1, 2, 3, 4, 0]);
  growing.give(Uint8Array.of(4, 5), 3);
  await ends(1, 2, 3, 4, 5);
  expect(taken).toEqual([1, 2, 3, 4, 5]);
});

test('the core hears with the first bytes that the response is not to be stored', async () => {
  const { growing, origin, request, ends } = await setUp();
  const whole = origin.hold();
  const heard = vi.fn();
  growing.heard = heard;
  void request.origin(new AbortController().signal, () => {});
  const { answer } = await whole.next;
  answer.writeHead(200, { 'Cache-Control': 'max-age=1, no-store' }).write(Buffer.of(1, 2));
  await vi.waitFor(() => expect(heard).toHaveBeenCalledWith(Uint8Array.of(1, 2), true));
  answer.end();
  await ends(1, 2);
});

test('what peers have sent behind what the origin sends comes behind it', async () => {
  const { growing, taken, sends, ends } = await setUp();
  // As the core does: the origin has sent the chunk that was waited for, and the next one is here.
  growing.heard = () => growing.give(Uint8Array.of(3, 4), 2);
  await sends(1, 2);
  await vi.waitFor(() => expect(taken.length).toBeGreaterThan(1));
  await ends(1, 2, 3, 4);
  expect(taken).toEqual([1, 2, 3, 4]);
});

test.each([
  'takes the request back',
  'has its time run out',
])('Shaka gets none of what waits once it %s', async (how) => {
  const { clock, player, load, asked, playback } = await loading({ timeout: 20_000 });
  player.live = true;
  const taken: number[] = [];
  let appended = () => {};
  const streamDataCallback = (some: Uint8Array) => {
    taken.push(...some);
    return new Promise<void>((resolve) => {
      appended = resolve;
    });
  };
  const pending = load({}, { streamDataCallback });
  const failed = pending.promise.catch(({ code }) => code);
  await asked();
  const { growing } = playback.request!;
  growing!.give(Uint8Array.of(1, 2), 0);
  growing!.give(Uint8Array.of(3, 4), 2);
  await vi.waitFor(() => expect(taken).toEqual([1, 2]));
  const back = /back/.test(how);
  if (back) await pending.abort();
  else await clock.advance(20_000);
  playback.reject(new Error('aborted'));
  const { OPERATION_ABORTED, TIMEOUT } = shaka.util.Error.Code;
  expect(await failed).toBe(back ? OPERATION_ABORTED : TIMEOUT);
  appended();
  await settle();
  expect(taken).toEqual([1, 2]);
});
