/** Segments that may still be made: dash.js has a loader of its own for them, which it gets the bytes of while they come. */

import { beforeEach, expect, test, vi } from 'vitest';
import { settle } from '../../hlsjs/src/testing.ts';
import { bytes, FakeLoader, setUp } from './testing.ts';

beforeEach(() => {
  FakeLoader.made = [];
  vi.stubGlobal('document', { baseURI: 'https://a/watch/' });
});

const boxes = (...values: number[]) => ({
  data: Uint8Array.from(values).buffer,
  lengthComputable: false,
  noTrace: true,
});

/** A player that has asked for such a segment, and what it was given of it. */
function ask() {
  const { clock, player, opened, attach } = setUp();
  attach();
  const { customData, response } = player.ask({}, 'FetchLoader');
  const own = player.loaders.FetchLoader!;
  const [playback] = opened as [(typeof opened)[0]];
  const told = customData.onprogress.mock.calls;
  return {
    ...{ clock, player, own, playback, customData, response },
    growing: playback.request!.growing!,
    given: () => told.flatMap(([{ data }]) => (data ? [...new Uint8Array(data)] : [])),
    samples: () => told.flatMap(([event]) => (event.lengthComputable ? [event] : [])),
    /** As dash.js's loader does it: boxes by themselves, last what it makes of the time, and a response with the rest. */
    send: (...values: number[]) => own.request.customData.onprogress!(boxes(...values)),
    finish(size: number, time: number | null, ...rest: number[]) {
      own.request.customData.onprogress!({ loaded: size, total: size, lengthComputable: true, time });
      Object.assign(own.response, { status: 200, headers: {}, url: 'at', data: Uint8Array.from(rest).buffer });
      own.request.customData.onloadend!();
    },
  };
}

test('chunks of peers come in turn and once, and what the origin sends goes on from there', async () => {
  const { own, playback, customData, response, growing, given, send, finish } = ask();
  expect(playback.request).toMatchObject({ url: 'https://cdn/v1/005.m4s', startMs: 8_000, durationMs: 4_000 });
  expect(own.request).toBeUndefined();
  growing.give(Uint8Array.of(1, 2), 0);
  growing.give(Uint8Array.of(3), 2);
  expect(given()).toEqual([1, 2, 3]);
  const heard: number[] = [];
  growing.heard = (some) => {
    heard.push(...some);
    // What peers have sent of what follows comes behind it.
    if (heard.length === 5) growing.give(Uint8Array.of(6, 7), 5);
  };
  playback.fromOrigin();
  expect(own.request.url).toBe('https://cdn/v1/005.m4s?CMCD=x');
  send(1, 2);
  expect(given()).toEqual([1, 2, 3]);
  send(3, 4, 5);
  expect(given()).toEqual([1, 2, 3, 4, 5, 6, 7]);
  send(6, 7, 8);
  expect(heard).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  finish(9, 5, 9);
  await settle();
  expect(given()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect([...new Uint8Array(response.data!)]).toEqual([9]);
  expect(customData.onloadend).toHaveBeenCalledOnce();
});

test('peers alone: the end has no more bytes, and one sample as the line would have brought them', async () => {
  const { clock, playback, customData, response, growing, given, samples } = ask();
  playback.bps = 8_000;
  growing.give(Uint8Array.of(1, 2, 3, 4), 0);
  // Nothing that waits is left behind, and a segment takes as long as it is made.
  await clock.advance(60_000);
  expect(customData.onloadend).not.toHaveBeenCalled();
  playback.resolve({ data: Uint8Array.of(1, 2, 3, 4).buffer, source: 'peer', bytes: bytes(0, 4) });
  await settle();
  expect([given(), response.status, response.data!.byteLength]).toEqual([[1, 2, 3, 4], 200, 0]);
  expect(samples()).toEqual([{ loaded: 4, total: 4, lengthComputable: true, noTrace: false, time: 4 }]);
  expect([customData.onloadend.mock.calls.length, clock.timers.size]).toEqual([1, 0]);
});

test('a segment that came as a whole is given as a whole', async () => {
  const { playback, response, given, samples } = ask();
  playback.progress(2, 4);
  playback.resolve({ data: Uint8Array.of(1, 2, 3, 4).buffer, source: 'peer', bytes: bytes(0, 4) });
  await settle();
  expect([given(), response.data!.byteLength]).toEqual([[], 4]);
  // Nothing is known of the line.
  expect(samples()).toMatchObject([{ loaded: 4, noTrace: true }]);
});

test('of what the origin alone sends the sample is what its loader says of the time', async () => {
  for (const [time, crowded, took] of [
    [40, false, 40],
    [40, true, 9],
    // It knows none of a segment that came at once.
    [null, false, 9],
  ] as const) {
    const { playback, response, given, samples, send, finish } = ask();
    playback.bps = 8_000;
    const { growing, ...request } = playback.request!;
    const fetched = request.origin(new AbortController().signal, playback.progress);
    send(1, 2, 3, 4);
    send(5, 6, 7, 8);
    expect(given()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    // Its rest may be the end of a buffer with what was given before.
    finish(9, time, 5, 6, 7, 8, 9);
    const { data } = await fetched;
    expect([...new Uint8Array(data)]).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    playback.resolve({ data, source: 'origin', bytes: bytes(9, 0), crowded });
    await settle();
    expect([...new Uint8Array(response.data!)]).toEqual([9]);
    expect(samples()).toMatchObject([{ loaded: 9, total: 9, time: took, noTrace: false }]);
  }
});

test.each(['no-store', 'max-age=1'])('the core hears with the first bytes what the headers say: %s', (said) => {
  const { own, playback, growing, send } = ask();
  growing.heard = vi.fn();
  playback.fromOrigin();
  own.response.headers = { 'cache-control': said };
  send(1, 2);
  expect(growing.heard).toHaveBeenCalledWith(Uint8Array.of(1, 2), said === 'no-store');
});

test('a part is asked for by its range, and not given before its segment is', async () => {
  const { own, playback, response, growing, given, send, finish } = ask();
  growing.heard = vi.fn();
  const fetched = playback.request!.origin(new AbortController().signal, playback.progress, { first: 2, last: 4 });
  expect(own.request.headers).toMatchObject({ Range: 'bytes=2-4' });
  send(3, 4, 5);
  finish(3, null);
  const { data } = await fetched;
  expect([[...new Uint8Array(data)], given()]).toEqual([[3, 4, 5], []]);
  expect(growing.heard).not.toHaveBeenCalled();
  playback.resolve({ data: Uint8Array.of(1, 2, 3, 4, 5).buffer, source: 'peer', bytes: bytes(3, 2) });
  await settle();
  expect(response.data!.byteLength).toBe(5);
});

test("an error of the origin is dash.js's, and its page is no media; one that breaks off, too", async () => {
  const missing = ask();
  missing.playback.fromOrigin();
  missing.own.answer(404, 10);
  await settle();
  expect(missing.response).toMatchObject({ status: 404, data: null });
  expect([missing.given(), missing.customData.onloadend.mock.calls.length]).toEqual([[], 1]);

  const broken = ask();
  broken.playback.fromOrigin();
  broken.send(1, 2);
  // It has the status before the bytes.
  broken.own.response.status = 200;
  broken.own.request.customData.onloadend!();
  await settle();
  expect(broken.response).toMatchObject({ status: 200, data: null });
  // dash.js asks again, from the beginning.
  broken.growing.give(Uint8Array.of(3), 2);
  expect(broken.given()).toEqual([1, 2]);
});

test('lets go of a segment, and gives nothing of it afterwards', async () => {
  const { own, playback, customData, growing, given, send } = ask();
  const stop = new AbortController();
  const fetched = playback.request!.origin(stop.signal, playback.progress);
  send(1, 2);
  customData.abort!();
  expect([playback.aborts, customData.onabort.mock.calls.length]).toEqual([1, 1]);
  stop.abort();
  await expect(fetched).rejects.toEqual({});
  expect(own.aborted).toBe(1);
  send(3);
  growing.give(Uint8Array.of(3), 2);
  expect([given(), customData.onloadend.mock.calls.length]).toEqual([[1, 2], 0]);
});

test('what is beside a segment comes from its origin, and as a whole', async () => {
  const { own, playback, given, finish } = ask();
  const fetched = playback.request!.beside!('https://cdn/v1/005.m4s.leeway', new AbortController().signal, () => {});
  expect(own.request).toMatchObject({
    url: 'https://cdn/v1/005.m4s.leeway',
    headers: { 'CMCD-Request': 'bl=(21300)' },
  });
  finish(2, null, 1, 2);
  expect([(await fetched).data.byteLength, given()]).toEqual([2, []]);
});

test('without peer delivery dash.js loads by itself, which is counted', () => {
  const { player, own, playback } = ask();
  playback.active = false;
  const { customData, response } = player.ask({}, 'FetchLoader');
  expect([own.response === response, own.request.customData === customData]).toEqual([true, true]);
  own.request.customData.onprogress!(boxes(1, 2));
  own.answer(200, 50);
  expect(playback.bypassed).toEqual([50, undefined]);
});
