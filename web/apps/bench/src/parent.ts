/** The process that opened this page: what it says, and what is said to it (internal/lab/bench/transferbench/pagestack.go). */

import type { PlanMessage, SignalBody } from '../../../packages/core/src/session/messages.ts';
import { openedBy } from './process.ts';

export interface Setup {
  /** A bare data channel, or the library's link. */
  bare: boolean;
  /** Of the library's links: the controller of the background paces what is sent, and the lane that all is asked for in. */
  law: boolean;
  lane: 0 | 1;
  send: boolean;
  channels: number;
  /** Bytes of a bare message, and what a bare channel may hold. */
  message: number;
  buffer: number;
  /** Pieces that a receiver has asked for and not got, and how many of them in one request. */
  outstanding: number;
  batch: number;
}

export type Order =
  | { type: 'setup'; setup: Setup }
  | { type: 'begin' | 'start'; link: number }
  | { type: 'signal'; link: number; body: SignalBody }
  | { type: 'measure'; warm_ms: number; run_ms: number };

export type Word =
  | { type: 'signal'; link: number; body: SignalBody }
  | { type: 'open'; link: number }
  | { type: 'report'; bytes: number; seconds: number; silence: number; task: number }
  | { type: 'failed'; why: string };

/** What a page end does. Links are numbered by the process. */
export interface End {
  begin(link: number): void;
  signal(link: number, body: SignalBody): void;
  /** All links are open: send, or ask. */
  start(link: number): void;
}

/** What an end tells. */
export interface EndEvents {
  signal(link: number, body: SignalBody): void;
  open(link: number): void;
  /** Payload that counts. */
  got(bytes: number): void;
  failed(why: string): void;
}

/** A bare description has no plan; the field is there because signals have it. */
export const noPlan: PlanMessage = { v: 1, data: 1, message: 65_535 };

export const { say, hear } = openedBy<Word, Order>();
