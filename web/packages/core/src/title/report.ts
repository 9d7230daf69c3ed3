/** What one title has to report: what players observed, what links failed of, where segments came from. */

import { add, type Figures, type Observation, type TitleSnapshot } from '../playback.ts';
import type { Engine, Reason } from '../ports.ts';
import { hexToId } from '../session/base64.ts';
import { createStats, type Stats } from '../stats/stats.ts';

export interface Report {
  /** Segments that came without the engine, and what it counts. */
  readonly stats: Stats;
  observe(delta: Partial<Observation>): void;
  linkFailed(reason: string): void;
  /** A segment came from the origin without the engine. */
  bypassed(bytes: number, reason: Reason): void;
  /** What has been counted since the last time, as the tracker's `stats` message has it. */
  take(engine: Pick<Engine, 'takeStats'> | undefined, last?: boolean): Figures & { interval_ms: number };
  /** Totals since the title was opened. */
  totals(): Pick<TitleSnapshot, 'totals' | 'playback' | 'linkFailures'>;
}

export function createReport(now: () => number): Report {
  const stats = createStats();
  const total: Figures = {};
  let pending: Figures = {};
  let takenAt = now();

  const count = (figures: Figures) => {
    add(pending, figures);
    add(total, figures);
  };

  return {
    stats,
    observe: (delta) => count(delta as Figures),
    linkFailed: (reason) => count({ link_failures: { [reason]: 1 } }),
    bypassed(bytes, reason) {
      stats.played(bytes);
      stats.segment('origin', reason);
    },
    take(engine, last) {
      const interval_ms = Math.max(1, Math.round(now() - takenAt));
      const taken = { interval_ms, link_failures: {}, ...(stats.take() as unknown as Figures) };
      add(taken, pending);
      if (engine) {
        const { peers = {}, ...rest } = engine.takeStats(last);
        add(taken, rest as unknown as Figures);
        // The engine names peers in hex, the tracker's messages in base64url.
        for (const peer in peers) add(taken, { peers: { [hexToId(peer)]: { ...peers[peer] } } });
      }
      pending = {};
      takenAt = now();
      return taken;
    },
    totals() {
      const { link_failures, ...playback } = total;
      return {
        totals: stats.totals(),
        playback: { stalls: 0, stall_ms: 0, played_ms: 0, played_bits: 0, switches: 0, ...playback },
        linkFailures: { ...(link_failures as Figures) },
      };
    },
  };
}
