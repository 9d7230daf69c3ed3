import { expect, it } from 'vitest';
import type { SegmentRequest } from '../ports.ts';
import { encodeParts, type PartsMessage } from '../protocol/parts.ts';
import { toHex } from '../protocol/peer.ts';
import { createStats } from '../stats/stats.ts';
import { FakeClock } from '../testing/clock.ts';
import { createLowLatency, type LowLatencyHost } from './nodescript.ts';
import type { Peer } from './ports.ts';
import type { Shared } from './shared.ts';
import type { CreateStreams, Streams } from './streams.ts';

const peer = (n: number, speaksParts = true) => ({ link: { peer: `${n}` }, speaksParts }) as Peer;
const stream = (n: number) => n.toString(16).padStart(2, '0').repeat(16);
const follow = (n: number, on = true) => encodeParts({ type: 'follow', stream: stream(n), on });

const part = { part: { sequence: 1, index: 0, listed: () => [] }, track: 'main', live: true, durationMs: 500 };
const ask = (more: Partial<SegmentRequest> = {}) => ({ ...part, ...more }) as SegmentRequest;

const setUp = () => {
  const clock = new FakeClock();
  const stats = createStats();
  const peers: Peer[] = [];
  const did: string[] = [];
  const shared = {
    clock,
    stats,
    off: null,
    stopped: false,
    peers: { all: () => peers },
    settled: (p: Promise<unknown>) => void p.catch((e) => did.push(`failed ${e}`)),
  } as unknown as Shared;
  const loading = { result: new Promise<never>(() => {}), abort: () => {} };
  const streams: Streams = {
    load: () => loading,
    linked: (p) => void did.push(`linked ${p.link.peer}`),
    gone: (p) => void did.push(`gone ${p.link.peer}`),
    heard: (p, m) => void did.push(`heard ${p.link.peer} ${toHex(m).slice(0, 4)} ${m.at(-1)}`),
    pushed: (p) => void did.push(`pushed ${p.link.peer}`),
    leave: (track) => void did.push(`leave ${track}`),
    leaveAll: () => void did.push('leave all'),
  };
  let settle: { come(): void; fail(): void } | undefined;
  let asked = 0;
  const loadStreams = () => {
    asked++;
    return new Promise<CreateStreams>((resolve, reject) => {
      settle = { come: () => resolve(() => streams), fail: () => reject(new Error('404')) };
    });
  };
  const low = createLowLatency(shared, { loadStreams } as unknown as LowLatencyHost);
  /** The script is there, or it is not. */
  const answer = async (comes: boolean) => {
    if (comes) settle!.come();
    else settle!.fail();
    await new Promise((done) => setTimeout(done));
  };
  return { low, shared, stats, clock, peers, did, answer, loading, asked: () => asked };
};

it('has the script come with the first part, and what peers said before is not lost', async () => {
  const { low, peers, did, stats, answer, loading, asked } = setUp();
  const [one, two, gone, deaf] = [peer(1), peer(2), peer(3), peer(4, false)];
  peers.push(one, two, deaf);
  for (const p of [one, two, gone]) low.linked(p);
  low.heard(one, follow(1));
  low.heard(one, follow(2));
  low.heard(one, follow(1, false));
  low.heard(two, follow(1));
  low.heard(gone, follow(1));
  low.gone(gone);
  expect(low.pushed(one, { type: 'data', request: 2 ** 31, offset: 0, sentAt: 0, payload: new Uint8Array(1) })).toBe(
    false,
  );
  // A segment is no reason to have it.
  expect(low.load(ask({ part: undefined }))).toBeUndefined();
  expect(asked()).toBe(0);
  expect(low.load(ask())).toBeUndefined();
  expect(low.load(ask())).toBeUndefined();
  expect(asked()).toBe(1);
  await answer(true);
  expect(did.splice(0)).toEqual(['linked 1', 'linked 2', 'heard 1 6002 1', 'heard 2 6001 1']);
  expect(stats.counters).toEqual({});
  expect(low.load(ask())).toBe(loading);
  low.heard(one, follow(3));
  low.linked(deaf);
  low.gone(two);
  expect(low.pushed(one, { type: 'data', request: 2 ** 31, offset: 0, sentAt: 0, payload: new Uint8Array(1) })).toBe(
    true,
  );
  low.load(ask({ part: undefined }));
  low.load(ask({ part: undefined, durationMs: 0 })); // what begins segments
  low.load(ask({ part: undefined, live: false }));
  low.leave();
  expect(did).toEqual(['heard 1 6003 1', 'gone 2', 'pushed 1', 'leave main', 'leave all']);
});

it('keeps eight streams of a peer until then, and counts what it drops', async () => {
  const { low, peers, did, stats, answer } = setUp();
  const one = peer(1);
  peers.push(one);
  for (let n = 0; n < 9; n++) low.heard(one, follow(n));
  expect(stats.counters).toEqual({ parts_early: 1 });
  // One of them ends, and leaves its place to another.
  low.heard(one, follow(0, false));
  low.heard(one, follow(20));
  const others: PartsMessage[] = [
    { type: 'hold', stream: stream(1), on: true },
    { type: 'subscribe', stream: stream(1), stripe: 0, slots: 8 },
    { type: 'part', stream: stream(1), push: 0, turn: 0, certificate: new Uint8Array(400) },
  ];
  for (const m of others) low.heard(one, encodeParts(m));
  low.heard(one, new Uint8Array([...follow(1), 0]));
  expect(stats.counters).toEqual({ parts_early: 5 });
  low.load(ask());
  await answer(true);
  expect(did.slice(1)).toEqual([1, 2, 3, 4, 5, 6, 7, 20].map((n) => `heard 1 60${stream(n).slice(0, 2)} 1`));
});

it('asks for a script that did not come after 10 s, 20 s, and so on', async () => {
  const { low, clock, stats, answer, asked } = setUp();
  for (const [n, wait] of [10_000, 20_000, 40_000].entries()) {
    low.load(ask());
    expect(asked()).toBe(n + 1);
    await answer(false);
    low.load(ask());
    expect(asked()).toBe(n + 1);
    clock.sleep(wait);
  }
  low.load(ask());
  await answer(true);
  expect(low.load(ask())).toBeDefined();
  expect(stats.counters).toEqual({ parts_script_missing: 3 });
});

it('has the origin send parts where peers deliver nothing', async () => {
  const { low, shared, did, answer, asked } = setUp();
  shared.off = 'policy';
  expect(low.load(ask())).toBeUndefined();
  expect(asked()).toBe(0);
  shared.off = null;
  low.load(ask());
  shared.stopped = true;
  await answer(true);
  expect(low.load(ask())).toBeUndefined();
  expect(did).toEqual([]);
});
