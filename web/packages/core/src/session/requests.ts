/** What a session asked of its tracker and has no answer to yet. IDs are never used again. */

import type { Clock } from '../ports.ts';
import type { Joined, TrackerErrorMessage } from './messages.ts';

/** For a welcome, and for the answer to a request. */
export const answerTimeoutMs = 10_000;

/** Why a request failed: the tracker's error, or `lost` and `timeout`. */
export type Refusal = Pick<TrackerErrorMessage, 'code' | 'message' | 'hint' | 'retry_after_ms'>;

const refusal = (code: string): Refusal => ({ code, message: '', hint: '' });

export interface Requests {
  id(): number;
  /** Sends a request by its ID, and waits for the answer. Rejects with a `Refusal`. */
  ask(send: (id: number) => boolean): Promise<Joined>;
  /** The answer to a request; false: none waits for it. */
  settle(id: number | undefined, answer: Joined | Refusal): boolean;
  /** The socket is gone. */
  lose(): void;
}

export const createRequests = (clock: Clock): Requests => {
  const pending = new Map<number, { resolve(joined: Joined): void; reject(refusal: Refusal): void; timer: number }>();
  let next = 1;
  const settle = (id = 0, answer: Joined | Refusal) => {
    const request = pending.get(id);
    if (!request) return false;
    pending.delete(id);
    clock.clearTimer(request.timer);
    if ('swarm' in answer) request.resolve(answer);
    else request.reject(answer);
    return true;
  };
  const id = () => next++;
  return {
    id,
    ask: (send) =>
      new Promise((resolve, reject) => {
        const own = id();
        if (!send(own)) return reject(refusal('lost'));
        const timer = clock.setTimer(() => settle(own, refusal('timeout')), answerTimeoutMs);
        pending.set(own, { resolve, reject, timer });
      }),
    settle,
    lose() {
      for (const own of [...pending.keys()]) settle(own, refusal('lost'));
    },
  };
};
