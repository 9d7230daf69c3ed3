/** How quick the other side of a link is: the rate of its data while something is asked of it (spec/schedule.md), and the round trip. */
import type { Clock } from '../ports.ts';

export interface Meter {
  /** Bytes per second, 0 unknown. */
  readonly rate: number;
  rttUs: number;
  /** So many bytes of a request came, so long after it, and nothing more is outstanding. */
  arrived(bytes: number, waitedUs: number, idle: boolean): void;
  roundTrip(us: number): void;
  /** Nothing is outstanding: the time until the next request is not its fault. */
  idle(): void;
}

const unknownRttUs = 50_000;
/** Bounded, since it is the other side that makes it long, and stall times grow with it. */
const longestRttUs = 1_000_000;
/** Least time or bytes for a sample of the rate. */
const rateMs = 50;
const rateBytes = 131_072;
/**
 * A sample of a rate that is lower, bytes per second, takes half a second, or as long as something is outstanding: the time before one message
 * says little of such a peer.
 */
const slowRate = 16_384;
const slowMs = 500;
/** What was due for so long in all bounds the rate by its mean, and both halves of that are halved beyond this. */
const meanLeastMs = 1_000;
const meanMostMs = 4_000;
/**
 * A rate below what an unknown one is taken for (spec/schedule.md) is believed for so long without data: a peer that was slow once, for
 * want of processor time perhaps, would never be asked again otherwise, and stay slow.
 */
const rateAgeMs = 10_000;
const unknownPace = 65_536;

const mean = (bytes: number, ms: number): number => Math.floor((bytes * 1000) / ms);

export const createMeter = (clock: Clock): Meter => {
  /** Of the sample; below 0 while idle. */
  let since = -1;
  let sampled = 0;
  /** Bytes of the message at its begin, which is not counted. */
  let first = 0;
  let burst = 0;
  /** Of the mean: time in which an answer or further data were due, and what came. */
  let dueMs = 0;
  let dueBytes = 0;
  let last = 0;
  const measured = () =>
    // A peer that serves its links in turn seems to have its whole line for one of them, while that has its turn.
    burst && dueMs >= meanLeastMs ? Math.max(1, Math.min(burst, mean(dueBytes, dueMs))) : burst;
  const stale = () => measured() < unknownPace && clock.now() - last >= rateAgeMs;
  const meter: Meter = {
    get rate() {
      return stale() ? 0 : measured();
    },
    rttUs: unknownRttUs,
    arrived(bytes, waitedUs, idle) {
      const now = clock.now();
      if (burst && stale()) burst = dueMs = dueBytes = 0;
      dueMs += since < 0 ? Math.max(0, (waitedUs - meter.rttUs) / 1000) : now - last;
      dueBytes += bytes;
      last = now;
      if (dueMs > meanMostMs) {
        dueMs /= 2;
        dueBytes /= 2;
      }
      if (since < 0) {
        since = now;
        first = bytes;
        // The answer to the first request of a burst: pings do not go out while there is traffic.
        meter.roundTrip(waitedUs);
      } else {
        sampled += bytes;
        const ms = now - since;
        if (ms >= (burst && burst < slowRate && !idle ? slowMs : rateMs) || (sampled >= rateBytes && ms > 0)) {
          // What came at its begin or at its end: which of them the time was for depends on the sender.
          if (!burst) sampled = Math.min(sampled, sampled - bytes + first);
          const sample = mean(sampled, ms);
          burst = Math.max(1, burst ? Math.floor((7 * burst + 3 * sample) / 10) : sample);
          since = now;
          sampled = 0;
        }
      }
      if (idle) meter.idle();
    },
    roundTrip(sample) {
      const us = Math.min(sample, longestRttUs);
      meter.rttUs = meter.rttUs === unknownRttUs ? us : Math.floor((7 * meter.rttUs + us) / 8);
    },
    idle() {
      since = -1;
      sampled = 0;
    },
  };
  return meter;
};
