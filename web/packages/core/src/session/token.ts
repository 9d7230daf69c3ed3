/**
 * The join tokens of a session (spec/access.md): the tracker says how long one is good, and another is shown before that on
 * the open socket.
 */

import type { Clock } from '../ports.ts';
import { backoffCapMs } from './backoff.ts';
import type { TrackerErrorMessage } from './messages.ts';

export type TokenSource = string | (() => string | Promise<string>);

/** The page's callback is asked for a token that the tracker takes so often in a row, for one session after the other. */
const tries = 5;
const firstRetryMs = 2_000;
/** Timers hold no more than 2^31 ms. */
const longestMs = 1e9;

export interface JoinTokensHost {
  clock: Clock;
  random(): number;
  source?: TokenSource;
  /** Sets the session's timer, which is that of the next token while there is a session. */
  after(f: () => void, ms: number): void;
  /** Tells one socket from the next. */
  socket(): number;
  /** Shows a token on the open socket. */
  show(token: string): void;
}

export interface JoinTokens {
  /** The token to greet the tracker with. */
  readonly inHand: string | undefined;
  /** Whether the page is to be asked for another one before that. */
  due(): boolean;
  refresh(): Promise<void>;
  /** A session begins whose token is good until a moment of the tracker's time, ms. */
  welcomed(expiresMs: number | undefined, serverOffsetMs: number): void;
  /** The token in hand is good until then. */
  granted(expiresMs: number | undefined, serverOffsetMs: number): void;
  /** The tracker refuses a token on the open socket. */
  expired(error: TrackerErrorMessage): void;
  /** Whether the next session may show another one, after so many attempts. */
  another(attempt: number): boolean;
  /** The tracker took none so far. */
  readonly refused: boolean;
}

export const createJoinTokens = ({ clock, random, source, after, socket, show }: JoinTokensHost): JoinTokens => {
  let token: string | undefined;
  /** Until when the token in hand is shown again; then the page is asked for another. Below 0: the tracker took none. */
  let renewAt = 0;
  let renewals = 0;
  let end = 0;

  const ask = async () => {
    try {
      return typeof source === 'function' ? await source() : source;
    } catch {
      // Without a token the tracker says what is missing, in its own words.
    }
  };

  const renewIn = (ms: number) => {
    if (typeof source === 'function') after(renew, Math.min(ms, longestMs));
  };

  /** Shows another token, again and again until the tracker grants it or ends the session. */
  const renew = async () => {
    const own = socket();
    const next = await ask();
    if (own !== socket()) return;
    renewIn((0.5 + random() / 2) * Math.min(backoffCapMs, firstRetryMs * 2 ** renewals++));
    if (!next) return;
    token = next;
    show(token);
  };

  /** Viewers that came together do not renew together. A token that brings no more time is as good as none. */
  const granted = (expiresMs = 0, serverOffsetMs: number) => {
    if (expiresMs <= end) return;
    end = expiresMs;
    renewals = 0;
    const now = clock.now();
    const inMs = (expiresMs - serverOffsetMs - now) * (0.5 + random() / 4);
    renewAt = now + inMs;
    renewIn(inMs);
  };

  return {
    get inHand() {
      return token;
    },
    due: () => clock.now() >= renewAt,
    async refresh() {
      token = await ask();
    },
    welcomed(expiresMs, serverOffsetMs) {
      end = renewAt = 0;
      granted(expiresMs, serverOffsetMs);
    },
    granted,
    expired({ code, id }) {
      // Without an ID it is the token in hand, with one that which was shown just now.
      if (code === 'token-expired' && !id) renewIn(0);
    },
    another(attempt) {
      if (typeof source !== 'function' || (attempt >= tries - 1 && renewAt <= 0)) return false;
      renewAt = -1;
      return true;
    },
    get refused() {
      return renewAt < 0;
    },
  };
};
