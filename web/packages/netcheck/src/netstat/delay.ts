/** Delays, their variation, and what is known of two clocks (spec/probe.md, Messages and Clocks). Times are microseconds. */
import type { Arrival } from './arrival.ts';

/** The bound on how far two clocks move apart: one microsecond in so many. */
const drift = 10_000;

/** RFC 3550's interarrival jitter. */
export function jitter(arrivals: readonly Arrival[]): number {
  let j = 0;
  for (let i = 1; i < arrivals.length; i++) {
    const [, sentBefore, receivedBefore] = arrivals[i - 1]!;
    const [, sent, received] = arrivals[i]!;
    j += (Math.abs(received - receivedBefore - (sent - sentBefore)) - j) / 16;
  }
  return j;
}

/** received − sent − offset of the arrivals, in ascending order; offset is the receiver's clock less the sender's. */
export function delays(arrivals: readonly Arrival[], offset: number): number[] {
  return arrivals.map(([, sent, received]) => received - sent - offset).sort((a, b) => a - b);
}

/** The largest less the smallest delay. It needs no common clock. */
export function delayRange(arrivals: readonly Arrival[]): number {
  const all = delays(arrivals, 0);
  return all.length === 0 ? 0 : all.at(-1)! - all[0]!;
}

/** A value of an ascending list, by nearest rank; 0 of an empty list. */
export function percentile(ascending: readonly number[], p: number): number {
  const n = ascending.length;
  return n === 0 ? 0 : ascending[Math.min(n, Math.max(1, Math.ceil((p * n) / 100))) - 1]!;
}

/** An echo's four times: sent and returned by the client's clock, received and echoed by the server's. */
export type Exchange = readonly [sent: number, received: number, echoed: number, returned: number];

/** What two clocks are apart, and how well that is known. */
export interface Offset {
  /** The server's clock less the client's. */
  clock: number;
  /** Round-trip time of the exchange that it comes from. */
  delay: number;
  /** The client's clock. */
  at: number;
}

const half = (n: number) => Math.floor(n / 2);

/** The offset by the exchange with the smallest round-trip time. */
export function clocks(exchanges: readonly Exchange[]): Offset | undefined {
  let best: Offset | undefined;
  for (const [sent, received, echoed, returned] of exchanges) {
    const delay = returned - sent - (echoed - received);
    if (delay < 0 || (best && delay >= best.delay)) continue;
    best = { clock: half(received - sent + (echoed - returned)), delay, at: half(sent + returned) };
  }
  return best;
}

/** By how much the offset may be wrong at a time of the client's clock. */
export const uncertainty = (offset: Offset, at: number): number =>
  half(offset.delay) + Math.floor(Math.abs(at - offset.at) / drift);

/** Whether a delay may be reported, which is known up to an uncertainty. */
export const oneWay = (delay: number, uncertain: number): boolean => delay > 0 && 2 * uncertain <= delay;
