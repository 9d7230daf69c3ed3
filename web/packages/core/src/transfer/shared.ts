/** What the parts of one engine have in common: clock, counters, line, segments, pieces and peers. */
import type { Cache } from '../cache/cache.ts';
import type { Clock, Crypto, EngineEvents, Reason } from '../ports.ts';
import type { Stats } from '../stats/stats.ts';
import type { Credit } from './credit.ts';
import type { Line } from './line.ts';
import type { Peers } from './ports.ts';
import type { Segments } from './segments.ts';

export interface Shared {
  clock: Clock;
  crypto: Crypto;
  stats: Stats;
  line: Line;
  credit: Credit;
  segments: Segments;
  cache: Cache;
  peers: Peers;
  /** Why peers deliver nothing; null: they do. */
  off: Reason | null;
  stopped: boolean;
  nowUs(): number;
  emit<K extends keyof EngineEvents>(event: K, detail: EngineEvents[K]): void;
  /** What goes on without being waited for; its failures are defects. */
  settled(p: Promise<unknown>): void;
  /** Something happened that the schedule may act on. */
  changed(): void;
}

/** Whether what the origin sends may be shared. */
export const sharing = ({ off, stopped }: Shared): boolean => !off && !stopped;
