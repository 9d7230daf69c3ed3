/** What is in no hurry waits for the first peer, as long as one may come. */

import type { Leeway } from '@leeway/core';

/** After a file was opened: how long a first link may take. */
const mostMs = 10_000;

/** Returns when a peer is linked, or none is to be expected. */
export function firstPeer(leeway: Leeway, manifest: string, signal: AbortSignal): Promise<void> {
  // The title was joined while the origin was asked how long the file is, or before the page began to read: that may be over.
  const known = leeway
    .stats()
    .titles.some((t) => t.manifest === manifest && (t.links.open || t.off || (t.swarm && t.viewers < 2)));
  if (known) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      for (const release of releases) release();
      leeway.clock.clearTimer(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const releases = [
      leeway.on('link', (link) => link.manifest === manifest && done()),
      leeway.on('off', (off) => off.manifest === manifest && off.reason && done()),
      leeway.on('joined', (joined) => joined.manifest === manifest && joined.viewers < 2 && done()),
      leeway.on('state', ({ state }) => /off|stopped/.test(state) && done()),
    ];
    const timer = leeway.clock.setTimer(done, mostMs);
    signal.addEventListener('abort', done);
  });
}
