import { describe, expect, test, vi } from 'vitest';
import { FakeClock, settle } from '../testing/clock.ts';
import { sessionHandlers } from '../testing/session.ts';
import { FakeTracker, welcome } from '../testing/socket.ts';
import { createSession, type TokenSource } from './session.ts';

const serverTime = 1_790_000_000_000;
const minute = 60_000;

/** A tracker that grants five minutes to each token that it has not seen, and ends sessions as spec/access.md says. */
class Door {
  readonly clock = new FakeClock();
  readonly tracker = new FakeTracker();
  readonly seen: string[] = [];
  readonly handlers = sessionHandlers();
  life = 5 * minute;
  private readonly offset = serverTime - this.clock.now();
  private read = 0;
  private until = 0;
  private socketNumber = 0;
  session;

  constructor(token: TokenSource, random = () => 0.5) {
    this.session = createSession({
      url: 'wss://tracker.example.com/',
      client: 'leeway-js/test',
      token,
      clock: this.clock,
      random,
      openSocket: this.tracker.open,
      handlers: this.handlers,
    });
    this.session.start();
  }

  private now(): number {
    return this.clock.now() + this.offset;
  }

  /** What the tracker does with a token. */
  private grant(token: unknown): number | undefined {
    if (typeof token !== 'string' || token === 'bad' || this.seen.includes(token)) return undefined;
    this.seen.push(token);
    this.until = this.now() + this.life;
    return this.until;
  }

  /** Lets time pass, the tracker answering within a second. */
  async pass(ms: number): Promise<void> {
    for (const end = this.clock.now() + ms; this.clock.now() < end; ) {
      await this.clock.advance(Math.min(1_000, end - this.clock.now()));
      this.answer();
      await settle();
    }
  }

  private answer(): void {
    const { sockets } = this.tracker;
    if (sockets.length === 0) return;
    const socket = this.tracker.last;
    if (this.socketNumber !== sockets.length) {
      this.socketNumber = sockets.length;
      this.read = 0;
      socket.handlers.open();
      return;
    }
    while (this.read < socket.sent.length) {
      const { type, id, token, ticket } = socket.sent[this.read++]!;
      if (type === 'hello' && ticket && token === this.seen.at(-1) && this.now() < this.until) {
        socket.say(welcome({ server_time_ms: this.now(), token_expires_ms: this.until }));
      } else if (type === 'hello') {
        const until = this.grant(token);
        if (until) socket.say(welcome({ server_time_ms: this.now(), token_expires_ms: until }));
        else socket.say({ type: 'error', code: token ? 'bad-token' : 'token-required', message: 'No.' });
      } else if (type === 'token') {
        // A client that shows the token in hand once more is granted what is left of it.
        const until = token === this.seen.at(-1) ? this.until : this.grant(token);
        if (until && until > this.now()) socket.say({ type: 'granted', id, token_expires_ms: until });
        else socket.say({ type: 'error', id, code: until ? 'token-expired' : 'bad-token', message: 'No.' });
      }
    }
    if (this.session.state !== 'ready') return;
    socket.say({ type: 'ticket', ticket: 'ticket-2' });
    if (this.now() >= this.until + 10_000) {
      socket.say({ type: 'error', code: 'token-expired', message: 'It has run out.' });
      socket.handlers.close();
    } else if (this.now() >= this.until && this.now() < this.until + 1_000) {
      socket.say({ type: 'error', code: 'token-expired', message: 'It has run out.' });
    }
  }
}

/** Tokens with numbers. */
const numbered = () => {
  let n = 0;
  return vi.fn(async () => `token-${++n}`);
};

describe('the join token', () => {
  test('of five minutes is renewed for an hour on one socket', async () => {
    const token = numbered();
    const door = new Door(token);
    await door.pass(60 * minute);
    expect(door.tracker.sockets).toHaveLength(1);
    expect(door.handlers.lost).not.toHaveBeenCalled();
    expect(door.handlers.error).not.toHaveBeenCalled();
    // With a draw in the middle it is asked for after 62.5 % of its life.
    expect(token.mock.calls.length).toBeGreaterThanOrEqual(19);
    expect(token.mock.calls.length).toBeLessThanOrEqual(20);
    door.session.stop();
    expect(door.clock.pending).toBe(0);
  });

  test('is asked for between a half and three quarters of its life', async () => {
    for (const draw of [0, 0.999]) {
      const token = numbered();
      const door = new Door(token, () => draw);
      await door.pass(2.4 * minute);
      expect(token).toHaveBeenCalledTimes(1);
      await door.pass(draw ? 1.2 * minute : 0.2 * minute);
      expect(token).toHaveBeenCalledTimes(draw ? 1 : 2);
      await door.pass(0.25 * minute);
      expect(token).toHaveBeenCalledTimes(2);
      door.session.stop();
    }
  });

  test('is tried again with back-off while the page has none', async () => {
    let n = 0;
    const asked: number[] = [];
    const door: Door = new Door(async () => {
      n++;
      asked.push(door?.clock.now());
      if (n > 1 && n < 6) throw new Error('the backend is down');
      return n === 6 ? 'bad' : `token-${n}`;
    });
    await door.pass(4.9 * minute);
    expect(door.seen).toEqual(['token-1', 'token-7']);
    const waits = asked.slice(2).map((at, i) => at - asked[i + 1]!);
    expect(waits).toEqual([1_500, 3_000, 6_000, 12_000, 22_500]);
    await door.pass(10 * minute);
    expect(door.tracker.sockets).toHaveLength(1);
    door.session.stop();
  });

  test('that runs out ends the session, and a few more tries', async () => {
    let down = false;
    const token = vi.fn(async () => {
      if (down) throw new Error('the backend is down');
      return 'token-1';
    });
    const door = new Door(token);
    await door.pass(minute);
    down = true;
    await door.pass(4.1 * minute);
    expect(door.session.state).toBe('ready');
    await door.pass(0.2 * minute);
    expect(door.handlers.lost).toHaveBeenCalled();
    expect(door.handlers.refused).not.toHaveBeenCalled();
    const before = token.mock.calls.length;
    await door.pass(5 * minute);
    expect(door.handlers.refused).toHaveBeenCalledOnce();
    expect(door.handlers.refused).toHaveBeenCalledWith(expect.objectContaining({ code: 'token-required' }));
    expect(token.mock.calls.length - before).toBeLessThanOrEqual(5);
    expect(door.clock.pending).toBe(0);
  });

  test('is asked for at once when the tracker says that it has run out', async () => {
    // The second call never comes back; nothing is sent until the tracker speaks.
    let n = 0;
    const door = new Door(() => (++n === 2 ? new Promise<string>(() => {}) : `token-${n}`));
    await door.pass(5.1 * minute);
    expect(n).toBe(3);
    expect(door.seen).toEqual(['token-1', 'token-3']);
    await door.pass(minute);
    expect(door.tracker.sockets).toHaveLength(1);
    door.session.stop();
  });

  test('that the tracker does not take is no sign that it cannot be reached', async () => {
    const token = vi.fn(() => 'bad');
    const door = new Door(token);
    await door.pass(minute);
    expect(door.handlers.refused).toHaveBeenCalledOnce();
    expect(token).toHaveBeenCalledTimes(5);
    expect(door.handlers.lost.mock.calls).toEqual([[0], [0], [0], [0]]);
  });

  test('that is always the same is not shown faster and faster', async () => {
    const token = vi.fn(async () => 'token-1');
    const door = new Door(token);
    await door.pass(20 * minute);
    expect(door.handlers.refused).toHaveBeenCalledOnce();
    expect(token.mock.calls.length).toBeLessThanOrEqual(20);
    expect(door.clock.pending).toBe(0);
  });

  test('in hand is shown again after a lost socket, and not asked for anew', async () => {
    const token = numbered();
    const door = new Door(token);
    await door.pass(minute);
    door.tracker.last.handlers.close();
    await door.pass(0.5 * minute);
    expect(door.session.state).toBe('ready');
    expect(token).toHaveBeenCalledTimes(1);
    await door.pass(10 * minute);
    expect(door.tracker.sockets).toHaveLength(2);
    door.session.stop();
  });

  test('that is a text is refused for good when it has run out', async () => {
    const door = new Door('token-1');
    await door.pass(5.5 * minute);
    expect(door.handlers.refused).toHaveBeenCalledOnce();
    expect(door.handlers.refused).toHaveBeenCalledWith(expect.objectContaining({ code: 'token-expired' }));
    expect(door.tracker.sockets).toHaveLength(1);
    expect(door.clock.pending).toBe(0);
  });

  test('of two months sets no timer that overflows', async () => {
    const token = numbered();
    const door = new Door(token);
    door.life = 60 * 24 * 60 * minute;
    const set = vi.spyOn(door.clock, 'setTimer');
    await door.pass(minute);
    expect(token).toHaveBeenCalledTimes(1);
    expect(Math.max(...set.mock.calls.map(([, ms]) => ms))).toBeLessThan(2 ** 31);
    door.session.stop();
  });
});
