/**
 * The session with a tracker: one WebSocket at a time, `hello` and `welcome`, back-off with full jitter, resumption by
 * ticket. Links do not depend on it once they are open; its loss costs introductions, nothing else.
 */

import type { Clock } from '../ports.ts';
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

/** What the session needs of a WebSocket. `open` may throw (a bad URL, a page that may not connect there). */
export interface Socket {
  send(text: string): void;
  close(code: number): void;
}
export interface SocketHandlers {
  open(): void;
  message(data: unknown): void;
  close(code: number): void;
}
export type OpenSocket = (url: string, protocol: string, handlers: SocketHandlers) => Socket;

export type TokenSource = string | (() => string | Promise<string>);

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

/** Why a request failed: the tracker's error, or `lost` and `timeout`. */
export type Refusal = Pick<TrackerErrorMessage, 'code' | 'message' | 'hint' | 'retry_after_ms'>;

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
  /** Sends a message if the session is ready, within the tracker's rate; at once for the last words of a page. */
  send(message: Outgoing, atOnce?: boolean): boolean;
  /** Joins a swarm. Rejects with a `Refusal`. */
  join(message: Omit<Join, 'type' | 'id'>): Promise<Joined>;
}

const protocol = 'leeway.v1';
/** For a welcome, and for the answer to a request. */
const answerTimeoutMs = 10_000;
/** After this much of a session the back-off starts from the beginning. */
const settledMs = 60_000;
const backoffBaseMs = 500;
const backoffCapMs = 30_000;
/** Over which a session comes back that was lost without a word: mostly others were lost with it. */
const lostSpreadMs = 6_000;
/** After it woke, a page that loses its session does not wait so long. */
const wokeMs = 10_000;
/** Outgoing messages kept while the tracker's rate limit holds them back; what comes beyond is dropped. */
const queueLength = 500;
/** Messages of a second that signals leave to all others: what strangers have this viewer say is not to hold up its own words. */
const reserved = 4;
const fatal = /^bad-(version|site|origin)$|token/;
/** The page's callback is asked for a token that the tracker takes so often in a row, for one session after the other. */
const tokenTries = 5;
/** Timers hold no more than 2^31 ms. */
const longestMs = 1e9;

interface Pending {
  resolve(joined: Joined): void;
  reject(refusal: Refusal): void;
  timer: number;
}

const refusal = (code: string): Refusal => ({ code, message: '', hint: '' });

export function createSession(o: SessionOptions): TrackerSession {
  const { clock, handlers } = o;
  const counters = { malformed: 0, unknown: 0, dropped: 0, reconnects: 0 };
  const pending = new Map<number, Pending>();
  let state: SessionState = 'idle';
  let serverOffsetMs = 0;
  let socket: Socket | undefined;
  /** Sockets are told apart by number: a late event of an old one is nobody's. */
  let generation = 0;
  /** Exponent of the back-off: attempts since the last settled session. */
  let attempt = 0;
  let notBefore = 0;
  let readyAt = 0;
  let calmAt = 0;
  let ticket: string | undefined;
  let timer = 0;
  let token: string | undefined;
  /** Until when the token in hand is shown again; then the page is asked for another. Below 0: the tracker took none. */
  let renewAt = 0;
  let renewals = 0;
  let tokenEnd = 0;
  let nextId = 1;
  /** Signals, which wait for all others. */
  let signals: string[] = [];
  let queue: string[] = [];
  let queueTimer = 0;
  /** Messages sent in this second, and how many may be. */
  let sent = 0;
  let rate = 0;

  const write = (text: string) => {
    try {
      socket?.send(text);
    } catch {
      // The close event follows and starts the next attempt.
    }
  };

  /** Sends what this second allows, and the rest in the next. */
  const flush = () => {
    while (sent < rate && queue.length > 0) {
      sent++;
      write(queue.shift()!);
    }
    while (sent < Math.max(1, rate - reserved) && signals.length > 0) {
      sent++;
      write(signals.shift()!);
    }
    queueTimer ||= clock.setTimer(() => {
      queueTimer = sent = 0;
      if (queue.length + signals.length > 0) flush();
    }, 1_000);
  };

  const settle = (id = 0) => {
    const request = pending.get(id);
    pending.delete(id);
    if (request) clock.clearTimer(request.timer);
    return request;
  };

  /** Closes the socket and ends what hangs on it. */
  const drop = (next: SessionState) => {
    state = next;
    generation++;
    clock.clearTimer(timer);
    clock.clearTimer(queueTimer);
    queueTimer = sent = 0;
    queue = [];
    signals = [];
    try {
      socket?.close(1000);
    } catch {
      // A socket that cannot be closed is closed.
    }
    socket = undefined;
    for (const id of [...pending.keys()]) settle(id)?.reject(refusal('lost'));
  };

  /** The socket is of no use any more: back off, then try again. Without a time nobody said that it would end. */
  const lose = (afterMs?: number) => {
    const now = clock.now();
    const ready = state === 'ready';
    notBefore = Math.max(notBefore, now + (afterMs ?? 0));
    if (ready && now - readyAt >= settledMs) attempt = 0;
    if (socket) counters.reconnects++;
    drop('waiting');
    const spread = ready && afterMs === undefined && now >= calmAt ? lostSpreadMs : 0;
    const jitter = o.random() * Math.max(spread, Math.min(backoffCapMs, backoffBaseMs * 2 ** attempt));
    attempt = Math.min(attempt + 1, 16);
    timer = clock.setTimer(connect, Math.max(jitter, notBefore - now));
    // A tracker that refuses tokens is there.
    handlers.lost(renewAt < 0 ? 0 : attempt);
  };

  const forbid = (why: string) => {
    drop('refused');
    handlers.forbidden(why);
  };

  const connect = () => {
    const own = ++generation;
    const live = () => own === generation;
    state = 'connecting';
    timer = clock.setTimer(lose, answerTimeoutMs);
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

  const ask = async () => {
    try {
      return typeof o.token === 'function' ? await o.token() : o.token;
    } catch {
      // Without a token the tracker says what is missing, in its own words.
    }
  };

  /** While there is a session, its timer is that of the next token. */
  const renewIn = (ms: number) => {
    clock.clearTimer(timer);
    if (typeof o.token === 'function') timer = clock.setTimer(renew, Math.min(ms, longestMs));
  };

  /** Shows another token on the open socket, again and again until the tracker grants it or ends the session. */
  const renew = async () => {
    const own = generation;
    const next = await ask();
    if (own !== generation) return;
    renewIn((0.5 + o.random() / 2) * Math.min(backoffCapMs, 2_000 * 2 ** renewals++));
    if (!next) return;
    token = next;
    send({ type: 'token', id: nextId++, token });
  };

  /**
   * The token in hand is good until then, by the tracker's clock: who came together does not renew together. One that brings
   * no time is as good as none.
   */
  const granted = (expiresMs = 0) => {
    if (expiresMs <= tokenEnd) return;
    tokenEnd = expiresMs;
    renewals = 0;
    const now = clock.now();
    const inMs = (expiresMs - serverOffsetMs - now) * (0.5 + o.random() / 4);
    renewAt = now + inMs;
    renewIn(inMs);
  };

  const hello = async (live: () => boolean) => {
    const { client, site } = o;
    if (clock.now() >= renewAt) token = await ask();
    if (live()) write(JSON.stringify({ type: 'hello', version: 1, client, site, token, ticket }));
  };

  const receive = (data: unknown) => {
    const message = parseIncoming(data);
    if (typeof message === 'string') counters[message]++;
    else if (message.type === 'welcome') welcome(message);
    else if (message.type === 'error') error(message);
    else if (message.type === 'reconnect') lose(message.after_ms);
    else if (state !== 'ready') counters.unknown++;
    else if (message.type === 'ticket') ticket = message.ticket;
    else if (message.type === 'granted') granted(message.token_expires_ms);
    else if (message.type === 'joined') settle(message.id)?.resolve(message);
    else handlers[message.type](message as never);
  };

  const welcome = (message: Welcome) => {
    if (state !== 'connecting') return;
    clock.clearTimer(timer);
    state = 'ready';
    readyAt = clock.now();
    serverOffsetMs = message.server_time_ms - readyAt;
    ticket = message.ticket;
    // One below the tracker's limit, so that its own clock never sees one too many.
    rate = Math.max(1, message.limits.messages_per_second - 1);
    tokenEnd = renewAt = 0;
    granted(message.token_expires_ms);
    handlers.welcome(message);
  };

  const error = (message: TrackerErrorMessage) => {
    const { code, retry_after_ms = 0 } = message;
    notBefore = Math.max(notBefore, clock.now() + retry_after_ms);
    if (/token/.test(code) && typeof o.token === 'function') {
      // The page may have another one: for this session, or a few times for the next.
      if (state === 'ready') {
        // Without an id it is the token in hand, with one that which was shown just now.
        if (code === 'token-expired' && !message.id) renewIn(0);
        return;
      }
      if (attempt < tokenTries - 1 || renewAt > 0) {
        renewAt = -1;
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
    if (code === 'rate-limited') sent = rate;
    const request = settle(message.id);
    if (request) request.reject(message);
    else handlers.error(message);
  };

  const send = (message: Outgoing, atOnce = false) => {
    if (state !== 'ready') return false;
    const text = JSON.stringify(message);
    if (atOnce) write(text);
    else {
      const line = message.type === 'signal' ? signals : queue;
      if (line.length < queueLength) line.push(text);
      else counters.dropped++;
      flush();
    }
    return true;
  };

  const leave = (next: SessionState) => {
    if (state === 'ready') [...queue, ...signals].forEach(write);
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
      timer = clock.setTimer(connect, Math.max(0, notBefore - clock.now()));
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
      attempt = 0;
      if (woke) calmAt = clock.now() + wokeMs;
      if (state === 'waiting' || (socket && !woke)) lose(0);
    },
    join: (message) =>
      new Promise((resolve, reject) => {
        const id = nextId++;
        if (!send({ type: 'join', id, ...message })) {
          reject(refusal('lost'));
          return;
        }
        const late = clock.setTimer(() => settle(id)?.reject(refusal('timeout')), answerTimeoutMs);
        pending.set(id, { resolve, reject, timer: late });
      }),
  };
}
