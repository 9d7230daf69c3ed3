import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { type Experience, scores } from './aim.ts';
import type { Arrival } from './arrival.ts';
import { clocks, delayRange, delays, type Exchange, jitter, oneWay, percentile, uncertainty } from './delay.ts';
import { type Direction, kinds } from './figures.ts';
import { pattern } from './record.ts';
import { type Probes, rpm, trimmedMean } from './responsiveness.ts';
import { tcpFigures } from './summary.ts';
import * as tcp from './tcp.ts';
import { inFlight } from './window.ts';

type Numbers = Record<string, number>;
interface Vectors {
  max_throughput: (tcp.Link & { bps: number; within?: number })[];
  windows: { name: string; direction: Direction; looks: tcp.TCPInfo[]; bytes: number }[];
  efficiency: { sent: number; retransmitted: number; percent: number | null; within?: number }[];
  buffer_delay: { average: number; baseline: number; percent: number | null }[];
  transfer: (tcp.Link & {
    bytes: number;
    elapsed: number;
    ideal: number;
    time_ratio: number | null;
    throughput_ratio: number | null;
  })[];
  path_mtu: { snd_mss: number; options: number; v6: boolean; mtu: number }[];
  records: {
    name: string;
    sent: number;
    arrivals: Arrival[];
    lost: number;
    duplicates?: number;
    foreign?: number;
    distances: number[];
    periods: [number, number][];
    reordered?: [number, number, number, number][];
    jitter?: number;
    delays?: number[];
    delay_range?: number;
  }[];
  clocks: {
    exchanges: Exchange[];
    offset: number | null;
    delay: number;
    at: number;
    uncertainty: [number, number][];
  }[];
  one_way: { delay: number; uncertainty: number; reported: boolean }[];
  percentiles: { values: number[]; p: number; value: number }[];
  trimmed_means: { values: number[]; mean: number }[];
  rpm: (Probes & { rpm: number | null })[];
  aim: (Required<{ [K in keyof Experience]: number }> & { scores: Record<string, [number, string]> })[];
  tcp_tests: {
    name: string;
    direction: Direction;
    v6: boolean;
    ramp_up: number;
    link_rate: number;
    received: [number, number][];
    looks: tcp.TCPInfo[][];
    figures: Numbers;
  }[];
}
const spec = new URL('../../../../../spec/', import.meta.url);
const v = JSON.parse(readFileSync(new URL('vectors/netstat.json', spec), 'utf8')) as Vectors;

const near = (got: number | undefined, want: number | null, within = 1e-9) => {
  if (want === null) expect(got).toBeUndefined();
  else expect(Math.abs(got! - want)).toBeLessThanOrEqual(within * Math.abs(want));
};

test('the specification has the kinds of figures', () => {
  const text = readFileSync(new URL('probe.md', spec), 'utf8').split('\n## Figures\n')[1]!.split('\n### ')[0]!;
  const rows = [...text.matchAll(/^\| `(\w+)` \| (\S[^|]*) \| (\S+) \|/gm)].map(([, name, unit, source]) => [
    name,
    unit,
    source,
  ]);
  expect(rows).toEqual(Object.entries(kinds).map(([name, [unit, source]]) => [name, unit, source]));
});

describe('tcp', () => {
  test.each(v.max_throughput)('largest throughput: $bps', (c) => near(tcp.maxThroughput(c), c.bps, c.within));
  test.each(v.windows)('window: $name', (c) => near(inFlight(c.direction, c.looks), c.bytes));
  test.each(v.efficiency)('efficiency: $percent', (c) =>
    near(tcp.efficiency(c.sent, c.retransmitted), c.percent, c.within));
  test.each(v.buffer_delay)('buffer delay: $percent', (c) => near(tcp.bufferDelay(c.average, c.baseline), c.percent));
  test.each(v.transfer)('transfer of $bytes bytes', (c) => {
    const transfer = { bytes: c.bytes, elapsed: c.elapsed, link: c };
    near(tcp.idealTime(transfer), c.ideal);
    near(tcp.timeRatio(transfer), c.time_ratio);
    near(tcp.throughputRatio(transfer), c.throughput_ratio);
  });
  test.each(v.path_mtu)('path MTU: $mtu', (c) =>
    expect(tcp.pathMTU({ SndMSS: c.snd_mss, Options: c.options }, c.v6)).toBe(c.mtu));
  test.each(v.tcp_tests)('$name', (c) => {
    const figures = tcpFigures({ ...c, rampUp: c.ramp_up, linkRate: c.link_rate });
    expect(figures.map((f) => f.name).sort()).toEqual(Object.keys(c.figures).sort());
    for (const f of figures) {
      near(f.value, c.figures[f.name]!);
      expect(f.direction).toBe(c.direction);
    }
  });
});

test.each(v.records)('record: $name', (c) => {
  const p = pattern(c);
  expect(p).toMatchObject({
    lost: c.lost,
    duplicates: c.duplicates ?? 0,
    foreign: c.foreign ?? 0,
    distances: c.distances,
  });
  expect(p.periods.map((x) => [x.first, x.length])).toEqual(c.periods);
  expect(p.reordered.map((x) => [x.sequence, x.extent, x.time, x.before])).toEqual(c.reordered ?? []);
  if (c.jitter !== undefined) near(jitter(p.first), c.jitter);
  if (c.delays) expect(delays(p.first, 0)).toEqual(c.delays);
  if (c.delay_range !== undefined) expect(delayRange(p.first)).toBe(c.delay_range);
});

test.each(v.clocks)('clocks of $exchanges', (c) => {
  const offset = clocks(c.exchanges);
  expect(offset).toEqual(c.offset === null ? undefined : { clock: c.offset, delay: c.delay, at: c.at });
  for (const [at, us] of c.uncertainty ?? []) expect(uncertainty(offset!, at)).toBe(us);
});

test('which one-way delays are reported, percentiles', () => {
  for (const c of v.one_way) expect(oneWay(c.delay, c.uncertainty)).toBe(c.reported);
  for (const c of v.percentiles) expect(percentile(c.values, c.p)).toBe(c.value);
});

test('responsiveness', () => {
  for (const c of v.trimmed_means) near(trimmedMean(c.values), c.mean);
  for (const c of v.rpm) near(rpm(c), c.rpm);
});

test.each(v.aim)('scores of $latency ms', ({ scores: want, ...inputs }) => {
  const known = Object.fromEntries(Object.entries(inputs).filter(([, value]) => value >= 0));
  const got = Object.entries(scores(known)).map(([use, s]) => [use, [s.points, s.class]]);
  expect(Object.fromEntries(got)).toEqual(want);
});
