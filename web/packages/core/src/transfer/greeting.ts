/** What is said of what is held: segment by segment, and all at once ahead of a link. */
import { type Cache, complete } from '../cache/cache.ts';
import { encode, flagBackground, flagNoUpload, type HaveEntry, type Message } from '../protocol/peer.ts';
import { hello } from './peer.ts';

export interface GreetingHost {
  cache: Cache;
  self(): string;
  swarm: string;
  uploads(): boolean;
  background?: unknown;
  /** Whether the player waits for a segment. */
  wanted(segment: string): boolean;
}

/** As many segments as fit into a message that goes with an answer (8,192 bytes), each with the largest bitmap. */
const mostGreeted = 98;

export const createGreeting = ({ cache, self, swarm, uploads, background, wanted }: GreetingHost) => {
  const announcement = (segment: string): HaveEntry | undefined => {
    const e = cache.get(segment);
    if (!e || !uploads()) return undefined;
    if (complete(e)) return { segment, state: 2, pieces: e.pieces };
    if (!e.count && !wanted(segment)) return undefined;
    return { segment, state: 1, pieces: e.pieces, bitmap: e.bitmap };
  };
  const flags = () => (uploads() ? 0 : flagNoUpload);
  return {
    announcement,
    flags,
    greeting() {
      const entries: HaveEntry[] = [];
      for (const id of cache.ids()) {
        const entry = announcement(id);
        if (entry && entries.length < mostGreeted) entries.push(entry);
      }
      const first: Message[] = [hello(flags() | (background ? flagBackground : 0), self(), swarm)];
      if (entries.length > 0) first.push({ type: 'have', entries });
      return { said: first.map(encode), held: entries.map(({ segment }) => segment) };
    },
  };
};
