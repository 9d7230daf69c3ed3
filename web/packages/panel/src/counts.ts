/** What a page has got and given since it is counted, whatever titles come and go. */

import type { Leeway } from '@leeway/core';

export interface Counts {
  /** From other viewers, to other viewers, and from servers, bytes. */
  taken: number;
  given: number;
  served: number;
}

export function count(leeway: Leeway, changed: () => void): { counts: Counts; stop(): void } {
  const counts: Counts = { taken: 0, given: 0, served: 0 };
  const releases = [
    leeway.on('piece', ({ direction, role, bytes }) => {
      counts[direction === 'out' ? 'given' : role === 'seed' ? 'served' : 'taken'] += bytes;
      changed();
    }),
    leeway.on('segment', ({ result }) => {
      counts.served += result.bytes.origin;
      changed();
    }),
  ];
  return {
    counts,
    stop() {
      for (const release of releases) release();
    },
  };
}
