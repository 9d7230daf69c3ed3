/**
 * What the engine seldom needs comes in a script of its own: the node of low-latency streams, and what says why names are not shared
 * (decision 80). It is asked for when something of it is needed the first time, and again after a while where it did not come.
 */
import type { Shared } from './shared.ts';
import type { CreateStreams } from './streams.ts';
import type { CreateUnlisted } from './unlisted.ts';

/** What the script has. */
export interface Seldom {
  createStreams: CreateStreams;
  createUnlisted: CreateUnlisted;
}

/** Does something with what a script has as soon as it is there. What it does not come for is not done. */
export type Need<T = Seldom> = (then: (has: T) => void) => void;

/** How long after it did not come it is asked for again; twice as long each time. */
const retryMs = 10_000;

export const createSeldom = <T>({ clock, stats, settled }: Shared, load: () => Promise<T>): Need<T> => {
  let coming: Promise<T | undefined> | undefined;
  let againMs = 0;
  let waitMs = retryMs;
  return (then) => {
    if (!coming && clock.now() >= againMs)
      coming = load().catch(() => {
        stats.count('script_missing');
        coming = undefined;
        againMs = clock.now() + waitMs;
        waitMs *= 2;
        return undefined;
      });
    if (coming) settled(coming.then((has) => has && then(has)));
  };
};
