/** What a page has got and given, whatever titles come and go. */

import type { Leeway, StatsDelta } from '@leeway/core';
import { sum } from './text.ts';

export interface Counts {
  /** From other viewers, to other viewers, and from servers, bytes. */
  taken: number;
  given: number;
  served: number;
}

const of = ({ bytes, uploaded }: StatsDelta): Counts => ({
  taken: bytes.peer + bytes.peer_relay,
  given: sum(Object.values(uploaded)),
  served: bytes.origin + bytes.seed + bytes.seed_relay,
});

/** Returns what tells the counts as of now. The figures of a title end with it, so what was added to them last stays. */
export function createCounts(leeway: Pick<Leeway, 'stats'>): () => Counts {
  const seen = new Map<string, Counts>();
  const counts: Counts = { taken: 0, given: 0, served: 0 };
  return () => {
    for (const { manifest, title, totals } of leeway.stats().titles) {
      const nameless = `${manifest}\n`;
      const key = nameless + (title ?? '');
      const now = of(totals);
      // It gets its name from the tracker, and has had bytes by then.
      const before = seen.get(nameless) ?? seen.get(key);
      seen.delete(nameless);
      for (const name of ['taken', 'given', 'served'] as const) {
        const was = before?.[name] ?? 0;
        // Less than before: the title was opened anew.
        counts[name] += now[name] < was ? now[name] : now[name] - was;
      }
      seen.set(key, now);
    }
    return counts;
  };
}
