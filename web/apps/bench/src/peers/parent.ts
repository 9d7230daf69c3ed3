/** The process that opened this page: what it says, and what is said to it (internal/lab/bench/peersbench/pageend.go). */

import type { SignalBody } from '../../../../packages/core/src/session/messages.ts';
import { openedBy } from '../process.ts';

export interface Setup {
  /** The library's links, or data channels with nothing around them. */
  ours: boolean;
  /** Of these: data channels of a link, bytes of a message, and what a channel may hold. */
  channels: number;
  message: number;
  buffer: number;
}

/** One way for items: a link, and of bare ones a channel. */
export interface Lane {
  link: number;
  channel: number;
}

/** So many bytes in items of one size, the last of which may be smaller, over several lanes. */
export interface Job {
  lanes: Lane[];
  bytes: number;
  item: number;
  /** Items that a lane has asked for and not got. */
  ahead: number;
}

export type Order =
  | { type: 'setup'; setup: Setup }
  | { type: 'begin' | 'drop'; link: number }
  | { type: 'signal'; link: number; body: SignalBody }
  | { type: 'job'; job: Job };

/** The moments of a link, of which the end that offers has them all; `at` is Unix time in ms. */
export type Moment = 'begun' | 'answered' | 'open' | 'usable';

export type Word =
  | { type: 'ready' }
  | { type: 'signal'; link: number; body: SignalBody }
  | { type: 'moment'; link: number; moment: { what: Moment; at: number } }
  | { type: 'done'; done: { ms: number } }
  | { type: 'failed'; why: string };

export const { say, hear } = openedBy<Word, Order>();
