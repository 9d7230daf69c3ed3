/** What Shaka appends while it comes: at low latency a segment takes as long to come as it lasts. */

import type { StreamData } from './shaka.ts';

export interface Flow {
  /** Takes the bytes of one fetch of the segment, from its beginning on. */
  fetch(): StreamData;
  /** These are all. Resolves when Shaka has what it has not had; where nothing was given, it appends them itself. */
  end(data: ArrayBuffer): Promise<unknown>;
}

/** Gives Shaka each byte of a segment once, in turn, whatever brought it first. */
export function createFlow(give: StreamData): Flow {
  let given = 0;
  let last: Promise<unknown> = Promise.resolve();
  const take = (bytes: Uint8Array, at: number) => {
    const fresh = bytes.subarray(Math.max(0, given - at));
    if (!fresh.length) return last;
    given += fresh.length;
    // Shaka notes itself what it cannot append.
    last = last.then(() => give(fresh)).catch(() => {});
    return last;
  };
  return {
    fetch() {
      let at = 0;
      return (bytes) => {
        const from = at;
        at += bytes.length;
        return take(bytes, from);
      };
    },
    end: (data) => (given ? take(new Uint8Array(data), 0) : last),
  };
}
