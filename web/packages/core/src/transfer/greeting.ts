/** What is said of what is held: segment by segment, and all at once ahead of a link. */
import { type Cache, complete } from '../cache/cache.ts';
import { flagParts } from '../protocol/parts.ts';
import { encode, flagBackground, flagNoUpload, type HaveEntry, type Message } from '../protocol/peer.ts';

export const ownMaxRequests = 256;

/** What this side says first on a link. */
export const hello = (flags: number, self: string, swarm: string): Message => ({
  type: 'hello',
  minVersion: 1,
  maxVersion: 1,
  flags,
  maxRequests: ownMaxRequests,
  peer: self,
  swarm,
});

export interface GreetingHost {
  cache: Cache;
  self(): string;
  swarm: string;
  uploads(): boolean;
  background?: unknown;
  /** What loads the node of low-latency streams, if there is one. */
  loadSeldom?: unknown;
  /** Whether the player waits for a segment. */
  wanted(segment: string): boolean;
  /** The certificate of a segment, if it is at hand. */
  certificate(segment: string): Uint8Array | undefined;
}

/** A message that goes with an answer, bytes; and as many segments as fit into one, each with the largest bitmap. */
const mostSaid = 8_192;
const mostGreeted = 98;

export interface Greeting {
  /** What to announce of a segment; undefined: nothing is held, or this viewer does not upload. */
  announcement(segment: string): HaveEntry | undefined;
  /** The segments of which something is held. */
  held(): Iterable<string>;
  /** The flags of this side's hello. */
  flags(): number;
  /** What goes with an answer: the messages, and the segments that they announce. `asked`: certificates that the offer asked for. */
  greeting(asked?: string[]): { said: Uint8Array[]; held: string[] };
}

export const createGreeting = (host: GreetingHost): Greeting => {
  const { cache, self, swarm, uploads, background, loadSeldom, wanted, certificate: of } = host;
  const announcement = (segment: string): HaveEntry | undefined => {
    const e = cache.get(segment);
    if (!e || !uploads()) return undefined;
    if (complete(e)) return { segment, state: 2, pieces: e.pieces };
    if (!e.count && !wanted(segment)) return undefined;
    return { segment, state: 1, pieces: e.pieces, bitmap: e.bitmap };
  };
  const flags = () => (uploads() ? 0 : flagNoUpload) | (loadSeldom ? flagParts : 0) | (background ? flagBackground : 0);
  return {
    announcement,
    held: cache.ids,
    flags,
    greeting(asked = []) {
      const entries: HaveEntry[] = [];
      for (const id of cache.ids()) {
        const entry = announcement(id);
        if (entry && entries.length < mostGreeted) entries.push(entry);
      }
      const first: Message[] = [hello(flags(), self(), swarm)];
      if (entries.length > 0) first.push({ type: 'have', entries });
      for (const segment of asked) {
        const certificate = of(segment);
        if (certificate) first.push({ type: 'certificate', segment, certificate });
      }
      // The certificate of a long segment does not go with an answer.
      return {
        said: first.map(encode).filter(({ length }) => length <= mostSaid),
        held: entries.map(({ segment }) => segment),
      };
    },
  };
};
