/**
 * The session with a tracker: one WebSocket at a time, `hello` and `welcome`, back-off with full jitter, resumption by
 * ticket. Links do not depend on it once they are open; its loss costs introductions, nothing else.
 */

import type { Clock } from '../ports.ts';
import { createBackoff } from './backoff.ts';
import {
  type Introduce,
  type Join,
  type Joined,
  type Outgoing,
  parseIncoming,
  type SignalIn,
  type TrackerErrorMessage,
  type Welcome,
} from './messages.ts';
import { createOutbox } from './outbox.ts';
import { answerTimeoutMs, createRequests } from './requests.ts';
import { createJoinTokens, type TokenSource } from './token.ts';

export type { Refusal } from './requests.ts';
export type { TokenSource } from './token.ts';

/** What the session needs of a WebSocket. `open` may throw (a bad URL, a page that may not connect there). */
export interface Socket {
  send(text: string): void;
  close(code: number): void;
}
export interface SocketHandlers {
  open(): void;
  message(data: unknown): void;
  close(): void;
}
export type OpenSocket = (url: string, protocol: string, handlers: SocketHandlers) => Socket;

export interface SessionHandlers {
  /** A session is open: the first, a resumed one, or a new one after the old was forgotten. */
  welcome(message: Welcome): void;
  introduce(message: Introduce): void;
  signal(message: SignalIn): void;
  keys(message: Pick<Welcome, 'verify_keys'>): void;
  ice(message: Pick<Welcome, 'ice_servers'>): void;
  revoke(message: Pick<Welcome, 'revocations'>): void;
  policy(message: Pick<Welcome, 'policy'>): void;
  /** An error that answers no request. */
  error(message: TrackerErrorMessage): void;
  /** The socket is gone, or never came up; another comes after a while. `attempts` failed in a row. */
  lost(attempts: number): void;
  /** The tracker does not take this client; nothing is tried again. */
  refused(message: TrackerErrorMessage): void;
  /** The browser lets this page have no such socket, for what it says; nothing is tried again. */
  forbidden(why: string): void;
}

export interface SessionOptions {
  url: string;
  client: string;
  site?: string;
  token?: TokenSource;
  clock: Clock;
  random: () => number;
  openSocket: OpenSocket;
  handlers: SessionHandlers;
}

export type SessionState = 'idle' | 'connecting' | 'ready' | 'waiting' | 'refused' | 'stopped';

/** Messages of the tracker that were not understood, by what was wrong with them; sockets lost. */
export interface SessionCounters {
  malformed: number;
  unknown: number;
  dropped: number;
  reconnects: number;
}

export interface TrackerSession {
  readonly state: SessionState;
  /** What to add to the clock for the tracker's time, ms. */
  readonly serverOffsetMs: number;
  readonly counters: SessionCounters;
  /** Connects, in a turn of its own. */
  start(): void;
  /** Sends what is still queued and closes the socket. `start` takes the session up again. */
  suspend(): void;
  /** The same, and forgets the ticket. Nothing happens afterwards. */
  stop(): void;
  /** The page's own policy forbids this socket. */
  forbid(why: string): void;
  /** Another socket, soon: this side has moved; or (`woke`) did not run, and what is lost about now is lost for that. */
  hurry(woke?: boolean): void;
  /** Sends a message if the session is ready, within the tracker's rate. */
  send(message: Outgoing): boolean;
  /** Joins a swarm. Rejects with a `Refusal`. */
  join(message: Omit<Join, 'type' | 'id'>): Promise<Joined>;
}

const protocol = 'leeway.v1';
/** Without a message for so long a tracker is gone, ms. It sends a ticket each minute. */
const silenceMs = 150_000;
const fatal = /^bad-(version|site|origin)$|token/;
export function createSession(o: SessionOptions): TrackerSession {
  const { clock, handlers } = o;
  const counters = { malformed: 0, unknown: 0, dropped: 0, reconnects: 0 };
  let state: SessionState = 'idle';
  let serverOffsetMs = 0;
  let socket: Socket | undefined;
  /** Sockets are told apart by number: a late event of an old one is dropped. */
  let generation = 0;
  let ticket: string | undefined;
  let timer = 0;
  let silence = 0;

  const write = (text: string) => {
    try {
      socket?.send(text);
    } catch {
      // The close event follows and starts the next attempt.
    }
  };

  const outbox = createOutbox(clock, write);
  const requests = createRequests(clock);
  const backoff = createBackoff(clock, o.random);
  const tokens = createJoinTokens({
    clock,
    random: o.random,
    source: o.token,
    after(f, ms) {
      clock.clearTimer(timer);
      timer = clock.setTimer(f, ms);
    },
    socket: () => generation,
    show: (token) => void send({ type: 'token', id: requests.id(), token }),
  });

  /** Gives the tracker so long for its next message. */
  const expect = (withinMs: number) => {
    clock.clearTimer(silence);
    silence = clock.setTimer(lose, withinMs);
  };

  /** Closes the socket and ends what hangs on it. */
  const drop = (next: SessionState) => {
    state = next;
    generation++;
    clock.clearTimer(timer);
    clock.clearTimer(silence);
    outbox.clear();
    try {
      socket?.close(1000);
    } catch {
      // A socket that cannot be closed is closed.
    }
    socket = undefined;
    requests.lose();
  };

  /** The socket is of no use any more: back off, then try again. Without a time it ended without notice. */
  const lose = (afterMs?: number) => {
    const ready = state === 'ready';
    backoff.hold(afterMs ?? 0);
    if (socket) counters.reconnects++;
    drop('waiting');
    timer = clock.setTimer(connect, backoff.nextMs(ready, afterMs !== undefined));
    // A tracker that refuses tokens is there.
    handlers.lost(tokens.refused ? 0 : backoff.attempt);
  };

  const forbid = (why: string) => {
    drop('refused');
    handlers.forbidden(why);
  };

  const connect = () => {
    const own = ++generation;
    const live = () => own === generation;
    state = 'connecting';
    expect(answerTimeoutMs);
    try {
      socket = o.openSocket(o.url, protocol, {
        open: () => {
          if (live()) void hello(live);
        },
        message: (data) => {
          if (live()) receive(data);
        },
        close: () => {
          if (live()) lose();
        },
      });
    } catch (error) {
      forbid((error as Error).message);
    }
  };

  const hello = async (live: () => boolean) => {
    const { client, site } = o;
    if (tokens.due()) await tokens.refresh();
    if (live()) write(JSON.stringify({ type: 'hello', version: 1, client, site, token: tokens.inHand, ticket }));
  };

  const receive = (data: unknown) => {
    if (state === 'ready') expect(silenceMs);
    const message = parseIncoming(data);
    if (typeof message === 'string') counters[message]++;
    else if (message.type === 'welcome') welcome(message);
    else if (message.type === 'error') error(message);
    else if (message.type === 'reconnect') lose(message.after_ms);
    else if (state !== 'ready') counters.unknown++;
    else if (message.type === 'ticket') ticket = message.ticket;
    else if (message.type === 'granted') tokens.granted(message.token_expires_ms, serverOffsetMs);
    else if (message.type === 'joined') requests.settle(message.id, message);
    else handlers[message.type](message as never);
  };

  const welcome = (message: Welcome) => {
    if (state !== 'connecting') return;
    state = 'ready';
    expect(silenceMs);
    backoff.ready();
    serverOffsetMs = message.server_time_ms - clock.now();
    ticket = message.ticket;
    outbox.limit(message.limits.messages_per_second);
    tokens.welcomed(message.token_expires_ms, serverOffsetMs);
    handlers.welcome(message);
  };

  const error = (message: TrackerErrorMessage) => {
    const { code, retry_after_ms = 0 } = message;
    backoff.hold(retry_after_ms);
    if (/token/.test(code) && typeof o.token === 'function') {
      // The page may have another one: for this session, or a few times for the next.
      if (state === 'ready') {
        tokens.expired(message);
        return;
      }
      if (tokens.another(backoff.attempt)) {
        lose(0);
        return;
      }
    }
    if (fatal.test(code)) {
      drop('refused');
      handlers.refused(message);
      return;
    }
    if (code === 'replaced') ticket = undefined;
    if (code === 'rate-limited') outbox.exhaust();
    if (!requests.settle(message.id, message)) handlers.error(message);
  };

  const send = (message: Outgoing) => {
    if (state !== 'ready') return false;
    if (!outbox.put(JSON.stringify(message), message.type === 'signal')) counters.dropped++;
    return true;
  };

  const leave = (next: SessionState) => {
    if (state === 'ready') outbox.rush();
    drop(next);
  };

  return {
    get state() {
      return state;
    },
    get serverOffsetMs() {
      return serverOffsetMs;
    },
    counters,
    send,
    start() {
      if (state !== 'idle') return;
      clock.clearTimer(timer);
      timer = clock.setTimer(connect, Math.max(0, backoff.heldMs()));
    },
    suspend() {
      if (/refused|stopped/.test(state)) return;
      leave('idle');
      handlers.lost(0);
    },
    stop() {
      leave('stopped');
      ticket = undefined;
    },
    forbid,
    hurry(woke) {
      backoff.excuse(woke);
      if (state === 'waiting' || (socket && !woke)) lose(0);
    },
    join: (message) => requests.ask((id) => send({ type: 'join', id, ...message })),
  };
}
