/** The figures of a TCP test (spec/probe.md, TCP). */
import { type Direction, type Figure, type FigureName, figure } from './figures.ts';
import {
  bufferDelay,
  efficiency,
  pathMTU,
  rate,
  stamped,
  type TCPInfo,
  type Transfer,
  throughputRatio,
  timeRatio,
} from './tcp.ts';
import { inFlight } from './window.ts';

/** One direction of a TCP test, over all its connections. */
export interface TCPTest {
  direction: Direction;
  v6: boolean;
  /** µs since the beginning that count for nothing but the baseline. */
  rampUp: number;
  /** What the receiver had after a time (µs), over all connections together, in order. */
  received: readonly (readonly [elapsed: number, bytes: number])[];
  /** Of each connection, in order. */
  looks: readonly (readonly TCPInfo[])[];
  /** bit/s, if the link's rate is known; else 0. */
  linkRate: number;
}

/** A test's figures. Those that cannot be computed are left out. */
export function tcpFigures(test: TCPTest): Figure[] {
  const all: Figure[] = [];
  const add = (name: FigureName, value: number | undefined, known = true) => {
    if (known && value !== undefined) all.push(figure(name, test.direction, value));
  };
  const mtu = mtuOf(test);
  const moved = transfer(test, mtu);
  add('throughput', rate(moved.bytes, moved.elapsed), moved.elapsed > 0);
  const { baseline, loaded, range } = roundTrips(test);
  add('baseline_rtt', baseline / 1e6, baseline > 0);
  add('loaded_rtt', loaded === undefined ? undefined : loaded / 1e6);
  add('rtt_range', range / 1e6, loaded !== undefined);
  add('transfer_time_ratio', timeRatio(moved));
  add('throughput_ratio', throughputRatio(moved));
  if (test.direction === 'down') add('tcp_efficiency', efficiencyOf(test));
  add('buffer_delay', loaded === undefined ? undefined : bufferDelay(loaded, baseline));
  const window = test.looks
    .map((looks) => looks.filter((look) => (look.ElapsedTime ?? 0) >= test.rampUp))
    .reduce((sum, looks) => sum + inFlight(test.direction, looks), 0);
  add('window', window, window > 0);
  add('achievable_throughput', loaded === undefined ? undefined : (window * 8e6) / loaded, window > 0);
  add('path_mtu', mtu, mtu > 0);
  return all;
}

function transfer(test: TCPTest, mtu: number): Transfer {
  const after = test.received.filter(([elapsed]) => elapsed >= test.rampUp);
  const first = after[0] ?? [0, 0];
  const last = after.at(-1) ?? first;
  const timestamps = test.looks.map((looks) => looks.at(-1)).find((look) => look !== undefined);
  return {
    bytes: last[1] - first[1],
    elapsed: last[0] - first[0],
    link: { rate: test.linkRate, mtu, v6: test.v6, timestamps: timestamps !== undefined && stamped(timestamps) },
  };
}

function roundTrips(test: TCPTest): { baseline: number; loaded: number | undefined; range: number } {
  let baseline = 0;
  const times: number[] = [];
  for (const look of test.looks.flat()) {
    const least = look.MinRTT ?? 0;
    if (least > 0 && (baseline === 0 || least < baseline)) baseline = least;
    const rtt = (test.direction === 'up' ? look.RcvRTT : look.RTT) ?? 0;
    if ((look.ElapsedTime ?? 0) >= test.rampUp && rtt > 0) times.push(rtt);
  }
  if (times.length === 0) return { baseline, loaded: undefined, range: 0 };
  const loaded = times.reduce((sum, t) => sum + t, 0) / times.length;
  return { baseline, loaded, range: Math.max(...times) - Math.min(...times) };
}

/** Of all that was sent between the first look after the ramp-up and the last. */
function efficiencyOf(test: TCPTest): number | undefined {
  let sent = 0;
  let again = 0;
  for (const looks of test.looks) {
    const first = looks.find((look) => (look.ElapsedTime ?? 0) >= test.rampUp);
    const last = looks.at(-1);
    if (!first || !last) continue;
    sent += (last.BytesSent ?? 0) - (first.BytesSent ?? 0);
    again += (last.BytesRetrans ?? 0) - (first.BytesRetrans ?? 0);
  }
  return efficiency(sent, again);
}

/** The smallest that a last look tells. */
function mtuOf(test: TCPTest): number {
  const all = test.looks
    .map((looks) => (looks.length === 0 ? 0 : pathMTU(looks.at(-1)!, test.v6)))
    .filter((m) => m > 0);
  return all.length === 0 ? 0 : Math.min(...all);
}
