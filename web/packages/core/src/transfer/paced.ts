import type { Clock, SegmentRequest } from '../ports.ts';
import type { Line } from './line.ts';

/** Bytes of others beside which a transfer says only that the line is no slower. */
const crowd = 1e12;

/**
 * A request for a segment that may still be made, as the line is to have it (spec/schedule.md, "Capacity told to the player"): what is
 * sent as fast as it is made is no sample, unless there is no other.
 */
export const paced = (
  request: SegmentRequest,
  clock: Clock,
  line: Pick<Line, 'estimate' | 'others'>,
): SegmentRequest => ({
  ...request,
  async origin(signal, ...how) {
    const startedMs = clock.now();
    let ms: number | undefined;
    try {
      const result = await request.origin(signal, ...how);
      // A loader may leave out the time in which nothing came.
      ms = result.transferMs;
      return result;
    } finally {
      const plays = (ms ?? clock.now() - startedMs) / request.durationMs;
      if (line.estimate() && (signal.aborted || (plays > 1 / 2 && plays <= 1))) line.others(crowd);
    }
  },
});
