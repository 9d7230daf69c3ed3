/** How long a segment is waited for, and when it is given up. */

import { beforeEach, expect, test, vi } from 'vitest';
import { settle } from '../../hlsjs/src/testing.ts';
import { bytes, FakeLoader, setUp } from './testing.ts';

beforeEach(() => {
  FakeLoader.made = [];
  vi.stubGlobal('document', { baseURI: 'https://a/watch/' });
});

test('abandons a segment by what the origin sends of it, as long as nothing comes of others', async () => {
  const { player, opened, attach } = setUp();
  attach();
  const asked = (how: (loader: FakeLoader) => void, part?: { first: number; last: number }) => {
    const traces: object[] = [];
    const { customData } = player.ask({ traces });
    customData.onprogress.mockImplementation(({ loaded, time, noTrace }) => {
      if (!noTrace) traces.push([loaded, time]);
    });
    if (part) void opened[0]!.request!.origin(new AbortController().signal, opened[0]!.progress, part);
    else opened[0]!.fromOrigin();
    how(FakeLoader.made.at(-1)!);
    return traces;
  };
  const send = ({ request }: FakeLoader, ...all: number[]) => {
    for (const loaded of all) request.customData.onprogress?.({ loaded, total: 1_000, lengthComputable: true });
  };
  player.ask({ type: 'MPD', mediaType: null, representation: null });
  opened[0]!.bps = 8_000;
  const alone = asked((loader) => send(loader, 400, 500));
  expect(alone).toEqual([
    [400, undefined],
    [500, undefined],
  ]);
  FakeLoader.made.at(-1)!.answer(200, 1_000);
  await settle();
  // The sample at the end is made of others.
  expect(alone).toEqual([
    [0, 1],
    [1_000, 1_000],
  ]);
  const beside = asked((loader) => {
    send(loader, 400);
    opened[0]!.progress(450, 1_000);
    send(loader, 500);
  });
  expect(beside).toEqual([[400, undefined]]);
  // A part is not all of what comes.
  expect(asked((loader) => send(loader, 400), { first: 0, last: 499 })).toEqual([]);
});

test('ends what the origin sends after a pause as long as its settings say, and lets peers have one', async () => {
  const { clock, player, opened, attach } = setUp();
  attach();
  player.settings.streaming.fragmentRequestProgressTimeout = 5_000;
  const byPeers = player.ask();
  opened[0]!.progress(400, 1_000);
  // dash.js ends a request of which it hears nothing for so long after it heard of it once.
  const heard = byPeers.customData.onprogress.mock.calls;
  for (let n = 1; n < 4; n++) {
    await clock.advance(4_999);
    expect(heard[n]?.[0]).toMatchObject({ loaded: 400, noTrace: true });
  }
  opened[0]!.resolve({ data: new ArrayBuffer(1_000), source: 'peer', bytes: bytes(0, 1_000) });
  await settle();
  expect([byPeers.customData.onloadend.mock.calls.length, clock.timers.size]).toEqual([1, 0]);

  const byOrigin = player.ask();
  opened[0]!.fromOrigin();
  const loader = FakeLoader.made.at(-1)!;
  loader.request.customData.onprogress?.({ loaded: 400, total: 1_000, lengthComputable: true });
  await clock.advance(4_999);
  expect(loader.aborted).toBe(0);
  await clock.advance(1);
  expect([loader.aborted, byOrigin.customData.onloadend.mock.calls.length, clock.timers.size]).toEqual([1, 1, 0]);
  expect(byOrigin.response).toMatchObject({ status: 0, data: null });
  // As it hears of one it may let go of it.
  const left = player.ask();
  left.customData.onprogress.mockImplementation(() => left.customData.abort!());
  opened[0]!.progress(400, 1_000);
  expect(clock.timers.size).toBe(0);
});

test('lets go of a segment, and ends one that takes too long', () => {
  const { clock, player, opened, attach } = setUp();
  attach();
  const first = player.ask();
  first.customData.abort!();
  expect([opened[0]!.aborts, first.customData.onabort.mock.calls.length]).toEqual([1, 1]);
  const second = player.ask();
  clock.advance(20_001);
  expect(second.customData.ontimeout).toHaveBeenCalledOnce();
  expect([second.customData.onloadend.mock.calls.length, opened[0]!.aborts]).toEqual([1, 2]);
});

test('gives an origin that is asked after a wait for peers the time that it has without them, not more', async () => {
  const { clock, player, opened, attach } = setUp();
  attach();
  const asked = player.ask();
  await clock.advance(15_000);
  opened[0]!.fromOrigin();
  await clock.advance(19_999);
  expect(asked.customData.ontimeout).not.toHaveBeenCalled();
  await clock.advance(1);
  expect(asked.customData.ontimeout).toHaveBeenCalledOnce();
  expect([asked.customData.onloadend.mock.calls.length, opened[0]!.aborts, clock.timers.size]).toEqual([1, 1, 0]);
});
