/** Keeps what a session says within the tracker's rate. */

import type { Clock } from '../ports.ts';

/** Outgoing messages kept while the rate holds them back. */
const queueLength = 500;
/** Messages of a second that signals leave to all others: what strangers have this viewer say is not to hold up its own words. */
const reserved = 4;

export interface Outbox {
  /** The tracker's rate. The outbox stays one message below it, so that the tracker's clock never sees one too many. */
  limit(perSecond: number): void;
  /** Sends nothing more in this second. */
  exhaust(): void;
  /** Sends a message as soon as the rate allows; false: too many wait, and this one is dropped. */
  put(text: string, signal: boolean): boolean;
  /** Sends everything at once: last words do not wait. */
  rush(): void;
  /** Forgets what has not been sent. */
  clear(): void;
}

export const createOutbox = (clock: Clock, write: (text: string) => void): Outbox => {
  let queue: string[] = [];
  /** They wait for all others. */
  let signals: string[] = [];
  /** Messages sent in this second, and how many may be. */
  let sent = 0;
  let rate = 0;
  let timer = 0;

  const pass = (line: string[], most: number) => {
    while (sent < most && line.length > 0) {
      sent++;
      write(line.shift()!);
    }
  };

  /** Sends what this second allows, and the rest in the next. */
  const flush = () => {
    pass(queue, rate);
    pass(signals, Math.max(1, rate - reserved));
    timer ||= clock.setTimer(() => {
      timer = sent = 0;
      if (queue.length + signals.length > 0) flush();
    }, 1_000);
  };

  return {
    limit(perSecond) {
      rate = Math.max(1, perSecond - 1);
    },
    exhaust() {
      sent = rate;
    },
    put(text, signal) {
      const line = signal ? signals : queue;
      const room = line.length < queueLength;
      if (room) line.push(text);
      flush();
      return room;
    },
    rush: () => [...queue, ...signals].forEach(write),
    clear() {
      clock.clearTimer(timer);
      timer = sent = 0;
      queue = [];
      signals = [];
    },
  };
};
