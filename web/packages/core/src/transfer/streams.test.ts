import { expect, it } from 'vitest';
import type { SegmentRequest } from '../ports.ts';
import { encodeParts } from '../protocol/parts.ts';
import { createStats } from '../stats/stats.ts';
import { FakeClock, settle } from '../testing/clock.ts';
import { createLine } from './line.ts';
import { streamUrl } from './lists.ts';
import type { Peer } from './ports.ts';
import type { Shared } from './shared.ts';
import { createStreams, type StreamsHost } from './streams.ts';

const id = (n: number) => n.toString(16).padStart(2, '0').repeat(16);
const [playlist, part, next] = ['https://cdn/live/index.m3u8', 'https://cdn/live/1.0.m4s', 'https://cdn/live/1.1.m4s'];
const ids: Record<string, string> = { [playlist]: id(1), [part]: id(2), [next]: id(4) };

/** A page that plays a stream. Nothing of the origin comes. */
const setUp = async () => {
  const clock = new FakeClock();
  const judged: Uint8Array[] = [];
  const asked: string[] = [];
  const byId = new Map<string, Peer>();
  const shared = {
    clock,
    stats: createStats(),
    line: { ...createLine(clock), fetch: ({ url }: { url: string }) => new Promise(() => asked.push(url)) },
    segments: { nameOf: ({ url }: { url: string }) => url, idOf: async (name: string) => ids[name] },
    peers: { byId },
    off: null,
    stopped: false,
    nowUs: () => clock.now() * 1000,
    settled() {},
  };
  const host = {
    self: () => id(9),
    uploads: () => true,
    capped: () => 0,
    verification: {
      async judge(_peer: unknown, raw: Uint8Array) {
        judged.push(raw);
        return undefined;
      },
      agrees() {},
    },
    certificates: { wanted: () => false, giveUp() {} },
    streamUrl,
    freshness: { dated: () => false, looked() {} },
  };
  const streams = createStreams(shared as unknown as Shared, host as unknown as StreamsHost);
  const load = async (url: string, index: number, track?: string) => {
    const ref = { url, durationMs: 500, sequence: 1, index };
    const request = { url, playlist, track, durationMs: 500, bitrate: 1e6, adaptive: false, deadlineMs: () => 5_000 };
    const asked = { ...request, part: { ...ref, listed: () => [ref] } } as unknown as SegmentRequest;
    const loading = streams.load(asked, () => expect.unreachable());
    loading.result.catch(() => {});
    await settle();
    return loading;
  };
  return { clock, streams, byId, judged, asked, load, loading: await load(part, 0) };
};

// Others may have told the same, and are asked for it no more.
it.each([true, false])('a certificate is verified, also if the peer that told it first is gone: %s', async (gone) => {
  const { streams, byId, judged } = await setUp();
  const seed = { link: { peer: id(3), role: 'seed' }, say() {} } as unknown as Peer;
  byId.set(id(3), seed);
  streams.linked(seed);
  if (gone) byId.delete(id(3));
  const certificate = new Uint8Array([1, 2, 3]);
  streams.heard(seed, encodeParts({ type: 'part', stream: id(1), push: 0, turn: 256, certificate }));
  await settle();
  expect(judged).toEqual([certificate]);
  streams.leaveAll();
});

// What they push would be too far ahead of that playlist, and would be charged to them.
it.each([
  ['the player is paused', true],
  ['the origin does not answer', false],
])('a stream is left when its playlist has listed nothing more for twelve parts: %s', async (_why, paused) => {
  const { clock, streams, byId, loading } = await setUp();
  const said: Uint8Array[] = [];
  const peer = { link: { peer: id(3), role: 'viewer' }, say: (m: Uint8Array) => said.push(m) } as unknown as Peer;
  byId.set(id(3), peer);
  streams.linked(peer);
  const follows = (on: boolean) => encodeParts({ type: 'follow', stream: id(1), on });
  if (paused) loading.abort();
  await clock.advance(5_900);
  expect(said).toEqual([follows(true)]);
  await clock.advance(200);
  expect(said).toEqual([follows(true), follows(false)]);
});

it('a part is asked for also where another track has played the same stream', async () => {
  const { clock, streams, loading, asked, load } = await setUp();
  loading.abort();
  await load(next, 1, 'main');
  await clock.advance(5_000);
  expect(asked).toContain(next);
  streams.leaveAll();
  expect(clock.pending).toBe(0);
});
