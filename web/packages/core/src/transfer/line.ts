/** What is known of the line to the origin: what it carries, and how soon the origin answers. Learned from every fetch. */
import type { Clock, OriginFetcher, SegmentRequest } from '../ports.ts';
import { createCapacity } from '../stats/capacity.ts';

export interface Line {
  /** Fetches a segment with the player's own loader, and learns from it, also if it is given up. */
  fetch(request: Pick<SegmentRequest, 'origin'>, ...how: Parameters<OriginFetcher>): ReturnType<OriginFetcher>;
  /** Bytes came from a peer. */
  others(bytes: number): void;
  /** A segment came from peers alone, in so long. While the origin fails, that is what there is to go by. */
  byPeers(bytes: number, ms: number): void;
  /** A transfer that the player made itself; or, with the clock's time, what parts of a stream are together. */
  bypassed(bytes: number, ms: number, nowMs?: number): void;
  /** Bits per second, once there is a sample. */
  estimate(): number | undefined;
  /** What the player is told of it. */
  told(): number | undefined;
  /** Clock time of the last segment's sample. */
  sampledAt(): number | undefined;
  /** What the origin takes to answer and to send so many bytes, µs; -1 unknown. */
  timeUs(bytes: number): number;
  /** The origin was asked for a part and did not send it. */
  wholes: boolean;
  /** Clock time of the last fetch's error; NaN: it brought none. */
  failedAt: number;
  /** Whether the origin counts as unable to serve. */
  fails(): boolean;
}

/** So long after an error the origin counts as unable to serve. Then the next segment is asked of it again, and not of a relay. */
const originRestMs = 30_000;

export const createLine = (clock: Clock): Line => {
  const { sample, estimate, told, sampledAt } = createCapacity();
  /** Rate of the last transfer, bits/s: those of a stream may all be too short for a sample. */
  let last = 0;
  let received = 0;
  let answerMs = 100;
  const answered = (ms: number) => {
    answerMs = (3 * answerMs + ms) / 4;
  };
  const line: Line = {
    wholes: false,
    failedAt: Number.NaN,
    fails: () => clock.now() - line.failedAt < originRestMs,
    others(bytes) {
      received += bytes;
    },
    byPeers(bytes, ms) {
      if (line.failedAt) sample(bytes, ms, 0);
    },
    bypassed: (bytes, ms, nowMs) => sample(bytes, ms, 0, nowMs),
    estimate,
    told,
    sampledAt,
    timeUs(bytes) {
      const bps = estimate() || last;
      return bps && bytes ? Math.ceil((answerMs + (bytes * 8000) / bps) * 1000) : -1;
    },
    async fetch({ origin }, signal, onProgress, part) {
      const startedMs = clock.now();
      const before = received;
      let firstMs = 0;
      let firstLoaded = 0;
      let lastMs = 0;
      let lastLoaded = 0;
      const result = await origin(
        signal,
        (loaded, total) => {
          if (signal.aborted) return;
          // A look that finds nothing new says nothing of the time since the last byte: progress may lag behind on a busy page.
          if (loaded > lastLoaded) {
            lastMs = clock.now();
            lastLoaded = loaded;
            if (!firstMs) {
              firstMs = lastMs;
              firstLoaded = loaded;
              answered(firstMs - startedMs);
            }
          }
          onProgress(loaded, total);
        },
        part,
      ).finally(() => {
        // Up to the last byte that was seen, not to now: what came since then is not known. Not when the abort comes: players
        // abort what has ended too, and looks are no second measurement of what was measured. Bytes behind a lost packet
        // are there and not seen, so it is only a bound, as with peers beside it.
        if (signal.aborted) sample(lastLoaded - firstLoaded, lastMs - firstMs, received - before + lastLoaded / 8);
        // Until the result shows otherwise.
        else line.failedAt = clock.now();
      });
      if (signal.aborted) return result;
      line.failedAt = Number.NaN;
      const { data, transferMs } = result;
      const now = clock.now();
      // What the loader measured is finer than progress, which plug-ins may poll.
      if (transferMs !== undefined) {
        if (!firstMs) answered(now - startedMs - transferMs);
        firstLoaded = 0;
      }
      const ms = transferMs ?? now - (firstMs || startedMs);
      // A part is too short for a measurement, but a bound.
      const others = received - before + (part ? data.byteLength / 8 : 0);
      // What came at once comes as soon as the origin answers.
      last = (data.byteLength * 8000) / ms;
      return { ...result, crowded: sample(data.byteLength - firstLoaded, ms, others, now) };
    },
  };
  return line;
};
