import type { Message } from './peer.ts';

/** What a side of a link said too much of (spec/peer-protocol.md, "Rates"). */
export type Limit = 'messages' | 'requests' | 'have' | 'certificates' | 'pings' | 'strays' | 'data';

/** So much at once, and so much more each second. */
export interface Rate {
  burst: number;
  perSecond: number;
}

export type Bucket = 'messages' | 'requests' | 'have' | 'certificates' | 'pings';

export const rates: Readonly<Record<Bucket, Rate>> = {
  messages: { burst: 1_000, perSecond: 200 },
  requests: { burst: 16_384, perSecond: 2_048 },
  have: { burst: 8_192, perSecond: 512 },
  certificates: { burst: 4_096, perSecond: 128 },
  pings: { burst: 64, perSecond: 4 },
};

/** Answers to nothing and the like that a link survives. */
export const maxStrays = 256;
/** Segments whose certificates one side waits for at a time. */
export const maxAsked = 4_096;
/** Data messages of one piece. */
export const maxPieceMessages = 64;
/** Bytes that a message of unsolicited data counts as. */
const leastUnsolicited = 1_024;

/** What so many bytes of unsolicited data in one message count as. */
export const unsolicitedCost = (bytes: number): number => Math.max(bytes, leastUnsolicited);

/** How many things a message names, in its one list if it has one: what it costs of its bucket. */
export const entriesOf = (m: Message): number => Object.values(m).find(Array.isArray)?.length ?? 1;

/** Entries that the list of a message has room for. */
const mostEntries = 255;

/** Says a list in as many messages as it takes. */
export const inMessages = <T>(list: T[], say: (part: T[]) => void): void => {
  for (let i = 0; i < list.length; i += mostEntries) say(list.slice(i, i + mostEntries));
};
