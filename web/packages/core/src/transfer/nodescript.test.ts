import { expect, it } from 'vitest';
import type { SegmentRequest } from '../ports.ts';
import { encodeParts, type PartsMessage } from '../protocol/parts.ts';
import { hex } from '../segment/segment.ts';
import { createStats } from '../stats/stats.ts';
import { createLowLatency, type LowLatencyHost } from './nodescript.ts';
import type { Peer } from './ports.ts';
import type { Need, Seldom } from './seldom.ts';
import type { Shared } from './shared.ts';
import type { Streams } from './streams.ts';

const peer = (n: number, speaksParts = true) => ({ link: { peer: `${n}` }, speaksParts }) as Peer;
const stream = (n: number) => n.toString(16).padStart(2, '0').repeat(16);
const follow = (n: number, on = true) => encodeParts({ type: 'follow', stream: stream(n), on });

const part = { part: { sequence: 1, index: 0, listed: () => [] }, track: 'main', live: true, durationMs: 500 };
const ask = (more: Partial<SegmentRequest> = {}) => ({ ...part, ...more }) as SegmentRequest;

const setUp = () => {
  const stats = createStats();
  const peers: Peer[] = [];
  const did: string[] = [];
  const shared = {
    stats,
    off: null,
    stopped: false,
    peers: { all: () => peers },
  } as unknown as Shared;
  const loading = { result: new Promise<never>(() => {}), abort: () => {} };
  const streams: Streams = {
    load: () => loading,
    linked: (p) => void did.push(`linked ${p.link.peer}`),
    gone: (p) => void did.push(`gone ${p.link.peer}`),
    heard: (p, m) => void did.push(`heard ${p.link.peer} ${hex(m).slice(0, 4)} ${m.at(-1)}`),
    pushed: (p) => void did.push(`pushed ${p.link.peer}`),
    leave: (track) => void did.push(`leave ${track}`),
    leaveAll: () => void did.push('leave all'),
  };
  /** What waits for the script. */
  let wait: ((seldom: Seldom) => void)[] = [];
  const need: Need = (then) => void wait.push(then);
  const low = createLowLatency(shared, { need } as unknown as LowLatencyHost);
  /** The script is there. */
  const come = () => {
    for (const then of wait) then({ createStreams: () => streams } as unknown as Seldom);
    wait = [];
  };
  return { low, shared, stats, peers, did, come, loading, asked: () => wait.length };
};

const plainly = () => ({ result: new Promise<never>(() => {}), abort() {} });

it('has the script come with the first part, and what peers said before is not lost', () => {
  const { low, peers, did, stats, come, loading, asked } = setUp();
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
  expect(low.load(ask({ part: undefined }), plainly)).toBeUndefined();
  expect(asked()).toBe(0);
  expect(low.load(ask(), plainly)).toBeUndefined();
  expect(low.load(ask(), plainly)).toBeUndefined();
  expect(asked()).toBe(2);
  come();
  expect(did.splice(0)).toEqual(['linked 1', 'linked 2', 'heard 1 6002 1', 'heard 2 6001 1']);
  expect(stats.counters).toEqual({});
  expect(low.load(ask(), plainly)).toBe(loading);
  low.heard(one, follow(3));
  low.linked(deaf);
  low.gone(two);
  expect(low.pushed(one, { type: 'data', request: 2 ** 31, offset: 0, sentAt: 0, payload: new Uint8Array(1) })).toBe(
    true,
  );
  low.load(ask({ part: undefined }), plainly);
  low.load(ask({ part: undefined, durationMs: 0 }), plainly); // what begins segments
  low.load(ask({ part: undefined, live: false }), plainly);
  low.leave();
  expect(did).toEqual(['heard 1 6003 1', 'gone 2', 'pushed 1', 'leave main', 'leave all']);
});

it('keeps eight streams of a peer until then, and counts what it drops', () => {
  const { low, peers, did, stats, come } = setUp();
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
  low.load(ask(), plainly);
  come();
  expect(did.slice(1)).toEqual([1, 2, 3, 4, 5, 6, 7, 20].map((n) => `heard 1 60${stream(n).slice(0, 2)} 1`));
});

it('has the origin send parts where peers deliver nothing', () => {
  const { low, shared, did, come, asked } = setUp();
  shared.off = 'policy';
  expect(low.load(ask(), plainly)).toBeUndefined();
  expect(asked()).toBe(0);
  shared.off = null;
  low.load(ask(), plainly);
  shared.stopped = true;
  come();
  expect(low.load(ask(), plainly)).toBeUndefined();
  expect(did).toEqual([]);
});
