/** What a peer is told of what is held here, as it changes. */
import type { Clock } from '../ports.ts';
import { inMessages } from '../protocol/limits.ts';
import type { HaveEntry } from '../protocol/peer.ts';

/** The least time between two messages about it. */
const everyMs = 50;

export const createAnnouncer = (
  clock: Clock,
  entryOf: (segment: string) => HaveEntry | undefined,
  send: (entries: HaveEntry[]) => void,
) => {
  const dirty = new Set<string>();
  const announced = new Set<string>();
  let timer = 0;
  const flush = () => {
    clock.clearTimer(timer);
    timer = 0;
    if (!dirty.size) return;
    timer = clock.setTimer(flush, everyMs);
    const entries: HaveEntry[] = [];
    for (const segment of dirty) {
      const entry = entryOf(segment);
      if (entry) {
        announced.add(segment);
        entries.push(entry);
      } else if (announced.delete(segment)) {
        entries.push({ segment, state: 0, pieces: 0 });
      }
    }
    dirty.clear();
    inMessages(entries, send);
  };
  return {
    /** Says all of it now. */
    flush,
    /** To be said with the next. */
    add: (segment: string) => void dirty.add(segment),
    /** To be said at once, if nothing was said just now. */
    tell(segment: string) {
      dirty.add(segment);
      if (!timer) flush();
    },
    /** Was said ahead of the link, and may have changed since. */
    said(segment: string) {
      announced.add(segment);
      dirty.add(segment);
    },
    stop: () => clock.clearTimer(timer),
  };
};
