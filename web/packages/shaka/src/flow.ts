/** What Shaka appends while it comes: at low latency a segment takes as long to come as it lasts. */

import type { StreamData } from './shaka.ts';

export interface Flow {
  /** Takes bytes from an offset on that is not beyond what Shaka has. */
  give(bytes: Uint8Array, at: number): Promise<unknown>;
  /** Takes the bytes of one fetch of the segment, from its beginning on. */
  fetch(): StreamData;
  /** These are all. Resolves when Shaka has what it has not had; where nothing was given, it appends them itself. */
  end(data: ArrayBuffer): Promise<unknown>;
  /** Shaka has taken the request back, or asks again: it gets nothing more of what waits. */
  stop(): void;
}

/** Gives Shaka each byte of a segment once, in turn, whatever brought it first. */
export function createFlow(append: StreamData): Flow {
  let given = 0;
  let over = false;
  let last: Promise<unknown> = Promise.resolve();
  const give: Flow['give'] = (bytes, at) => {
    const fresh = bytes.subarray(Math.max(0, given - at));
    if (!fresh.length) return last;
    given += fresh.length;
    // Shaka notes itself what it cannot append.
    last = last.then(() => over || append(fresh)).catch(() => {});
    return last;
  };
  return {
    give,
    fetch() {
      let at = 0;
      return (bytes) => {
        const from = at;
        at += bytes.length;
        return give(bytes, from);
      };
    },
    end: (data) => (given ? give(new Uint8Array(data), 0) : last),
    stop() {
      over = true;
    },
  };
}
