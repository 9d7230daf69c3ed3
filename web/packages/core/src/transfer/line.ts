/** What is known of the line to the origin: what it carries, and how soon the origin answers. Learned from every fetch. */
import type { Clock, OriginFetcher, SegmentRequest } from '../ports.ts';
import { createCapacity } from '../stats/capacity.ts';

export interface Line {
  /** Fetches a segment with the player's own loader, and learns from it. */
  fetch(request: Pick<SegmentRequest, 'origin'>, ...how: Parameters<OriginFetcher>): ReturnType<OriginFetcher>;
  /** Bits per second, once there is a sample. */
  estimate(): number | undefined;
  /** Clock time of the last sample. */
  sampledAt(): number | undefined;
  /** What the origin takes to answer and to send so many bytes, µs; -1 unknown. */
  timeUs(bytes: number): number;
}

export const createLine = (clock: Clock): Line => {
  const { sample, estimate, sampledAt } = createCapacity();
  let answerMs = 100;
  const answered = (ms: number) => {
    answerMs = (3 * answerMs + ms) / 4;
  };
  return {
    estimate,
    sampledAt,
    timeUs(bytes) {
      const bps = estimate();
      return bps && bytes ? Math.ceil(answerMs * 1000 + (bytes * 8_000_000) / bps) : -1;
    },
    async fetch({ origin }, signal, onProgress) {
      const startedMs = clock.now();
      let firstMs = 0;
      let firstLoaded = 0;
      const result = await origin(signal, (loaded, total) => {
        if (signal.aborted) return;
        if (!firstMs && loaded > 0) {
          firstMs = clock.now();
          firstLoaded = loaded;
          answered(firstMs - startedMs);
        }
        onProgress(loaded, total);
      });
      const { data, transferMs } = result;
      const size = data.byteLength;
      const now = clock.now();
      if (signal.aborted) return result;
      // What the loader measured is finer than progress, which plug-ins may poll.
      if (transferMs !== undefined) {
        sample(size, transferMs, now);
        if (!firstMs) answered(now - startedMs - transferMs);
      } else if (firstMs && size > firstLoaded) sample(size - firstLoaded, now - firstMs, now);
      else sample(size, now - startedMs, now);
      return result;
    },
  };
};
