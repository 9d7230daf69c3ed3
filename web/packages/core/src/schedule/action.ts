import type { Reason } from '../ports.ts';
import type { WantedSegment } from './input.ts';

export type RequestReason = 'near' | 'race' | 'background';

export type Action =
  | { type: 'certificate'; segment: string; peer: string }
  | { type: 'request'; segment: string; piece: number; peer: string; lane: 0 | 1; reason: RequestReason }
  | { type: 'cancel'; segment: string; piece: number; peer: string; reason: 'stalled' | 'late' }
  | { type: 'promote'; segment: string; piece: number; peer: string }
  | { type: 'origin'; segment: string; reason: Reason }
  | { type: 'stop-origin'; segment: string }
  | { type: 'fail'; segment: string }
  | { type: 'wake'; at_us: number };

/** What a decision has come to so far. */
export interface Plan {
  actions: Action[];
  /** Starts the origin, if it is idle. */
  origin(s: WantedSegment, reason: Reason): void;
}

export const createPlan = (): Plan => {
  const actions: Action[] = [];
  return {
    actions,
    origin(s, reason) {
      if (s.origin === 'idle') actions.push({ type: 'origin', segment: s.id, reason });
    },
  };
};
