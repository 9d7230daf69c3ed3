/** Tells the tracker how a joined title stands, regularly and soon after a change. */

import type { Links } from '../link/links.ts';
import type { Clock } from '../ports.ts';
import type { RangeMessage, Welcome } from '../session/messages.ts';
import type { TrackerSession } from '../session/session.ts';
import { createTimers } from './timers.ts';

const debounceMs = 200;

export interface UpdatesHost {
  clock: Clock;
  session: TrackerSession;
  links(): Links;
  /** Joined; undefined: none. */
  swarm(): string | undefined;
  /** What the viewer holds and will want next. */
  range(): RangeMessage | undefined;
  sendStats(): void;
  caught(where: string, error: unknown): void;
}

export interface Updates {
  /** Of the swarm that was joined, at the intervals of the welcome. */
  begin(welcome: Welcome): void;
  /** Of a change, together with what else changes soon. */
  soon(): void;
  /** Links came or went: tells so if the tracker should introduce more peers. */
  changed(): void;
  /** Nothing more until the next begin. */
  stop(): void;
}

export const createUpdates = ({ clock, session, links, swarm, range, sendStats, caught }: UpdatesHost): Updates => {
  const timers = createTimers<'update' | 'stats' | 'soon'>(clock, caught);
  let everyMs = 0;
  let statsMs = 0;
  let lastWant = 0;

  const send = () => {
    timers.set('update', send, everyMs);
    const { want, open } = links();
    lastWant = want;
    session.send({ type: 'update', swarm: swarm()!, range: range(), saturated: want === 0, links: open, want });
  };
  const tick = () => {
    timers.set('stats', tick, statsMs);
    sendStats();
  };
  const soon = () => {
    if (swarm() && !timers.isSet('soon') && session.state === 'ready') timers.set('soon', send, debounceMs);
  };

  return {
    begin({ update_interval_ms, stats_interval_ms }) {
      everyMs = update_interval_ms;
      statsMs = stats_interval_ms;
      timers.set('update', send, everyMs);
      timers.set('stats', tick, statsMs);
    },
    soon,
    changed() {
      const { want, open } = links();
      if (want > lastWant || open === 0) soon();
    },
    stop: timers.clearAll,
  };
};
