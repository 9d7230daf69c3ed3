/** The process that opened this page: what it says, and what is said to it (internal/lab/bench/transportbench/pagestack.go). */

import type { PlanMessage } from '../../../../packages/core/src/session/messages.ts';
import { openedBy } from '../process.ts';

export interface Setup {
  /** This end sends; the other kind of end acknowledges, and asks where it is to. */
  send: boolean;
  /** A receiver asks piece by piece, within a window of its own. */
  asks: boolean;
}

/** What one end of a link tells the other before they are linked. */
export interface Signal {
  description?: { SDP: string; Plan: PlanMessage };
  candidate?: { Candidate: string; Mid: string; Line: number; End: boolean };
}

export type Order =
  | { type: 'setup'; setup: Setup }
  | { type: 'begin'; link: number }
  | { type: 'signal'; link: number; signal: Signal }
  | { type: 'start' }
  /** Ask for a foreground segment over the first link. */
  | { type: 'burst'; bytes: number };

/** What a background host says of itself; times are milliseconds. */
export interface State {
  at_ms: number;
  law: string;
  window: number;
  flight: number;
  sent: number;
  acked: number;
  base: number;
  queuing: number;
  target: number;
  rtt: number;
  slowdowns: number;
  /** Among how many tabs the line is divided. */
  parts: number;
}

export type Word =
  | { type: 'ready'; hidden: boolean }
  | { type: 'signal'; link: number; signal: Signal }
  | { type: 'open'; link: number }
  | { type: 'state'; state: State }
  | { type: 'took'; took: { bytes: number; seconds: number } }
  | { type: 'failed'; why: string };

export const { say, hear } = openedBy<Word, Order>();
