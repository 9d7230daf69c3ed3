/** Shares a job's items among its lanes: a lane that has got one asks for the next. The twin of the bench's in Go. */

import type { Job, Lane } from './parent.ts';

export interface Fetcher {
  begin(job: Job): void;
  /** An item has come whole on a lane. */
  arrived(lane: Lane): void;
}

export function createFetcher(
  now: () => number,
  ask: (lane: Lane, item: number, bytes: number) => void,
  done: (ms: number) => void,
): Fetcher {
  let job: Job;
  let next = 0;
  let left = 0;
  let since = 0;
  const items = () => Math.ceil(job.bytes / job.item);
  const more = (lane: Lane) => {
    if (next >= items()) return;
    const item = next++;
    ask(lane, item, Math.min(job.item, job.bytes - item * job.item));
  };
  return {
    begin(order) {
      job = order;
      next = 0;
      left = items();
      since = now();
      for (let i = 0; i < job.ahead; i++) for (const lane of job.lanes) more(lane);
    },
    arrived(lane) {
      if (--left === 0) done(now() - since);
      else more(lane);
    },
  };
}
