import { describe, expect, test } from 'vitest';
import { FakeClock, settle } from '../testing/clock.ts';
import { sessionHandlers } from '../testing/session.ts';
import { FakeTracker, swarm, welcome } from '../testing/socket.ts';
import { createSession, type SessionOptions, type TrackerSession } from './session.ts';

function setUp(more: Partial<SessionOptions> = {}) {
  const clock = new FakeClock();
  const tracker = new FakeTracker();
  const handlers = sessionHandlers();
  const session = createSession({
    url: 'wss://tracker.example.com/',
    client: 'leeway-js/test',
    clock,
    random: () => 0.5,
    openSocket: tracker.open,
    handlers,
    ...more,
  });
  const ready = async (message = welcome()) => {
    session.start();
    await clock.advance(0);
    tracker.last.handlers.open();
    await settle();
    tracker.last.say(message);
  };
  return { clock, tracker, handlers, session, ready };
}

describe('the tracker session', () => {
  test('says hello and hands on the welcome', async () => {
    const { tracker, handlers, session, ready } = setUp({ site: 'demo', token: () => Promise.resolve('t') });
    await ready();
    expect(tracker.last.protocol).toBe('leeway.v1');
    expect(tracker.last.sent[0]).toEqual({
      type: 'hello',
      version: 1,
      client: 'leeway-js/test',
      site: 'demo',
      token: 't',
    });
    expect(handlers.welcome).toHaveBeenCalledOnce();
    expect(session.state).toBe('ready');
  });

  test('shows the ticket that came last', async () => {
    const { clock, tracker, handlers, ready } = setUp();
    await ready();
    tracker.last.say({ type: 'ticket', ticket: 'ticket-2' });
    tracker.last.handlers.close();
    await clock.advance(3_000);
    tracker.last.handlers.close();
    await clock.advance(500);
    tracker.last.handlers.open();
    await settle();
    expect(tracker.last.sent[0]).toMatchObject({ type: 'hello', ticket: 'ticket-2' });
    expect(handlers.lost).toHaveBeenLastCalledWith(2);
  });

  test('takes a tracker that sends nothing for lost', async () => {
    const { clock, tracker, handlers, session, ready } = setUp();
    await ready();
    for (let minute = 0; minute < 10; minute++) {
      await clock.advance(60_000);
      tracker.last.say({ type: 'ticket', ticket: `ticket-${minute}` });
    }
    await clock.advance(149_999);
    expect(session.state).toBe('ready');
    await clock.advance(1);
    expect([session.state, tracker.last.closed, session.counters.reconnects]).toEqual(['waiting', 1000, 1]);
    expect(handlers.lost).toHaveBeenCalledOnce();
    session.stop();
    expect(clock.pending).toBe(0);
  });

  test.each([
    ['lost without a word', () => {}, 6_000],
    ['adrift', (s: TrackerSession) => s.hurry(), 500],
    ['awake, then lost', (s: TrackerSession) => s.hurry(true), 500],
  ])('comes back when %s', async (_, hurry, spread) => {
    for (const random of [0, 0.999]) {
      const { clock, tracker, session, ready } = setUp({ random: () => random });
      await ready();
      hurry(session);
      if (session.state === 'ready') {
        await clock.advance(spread === 500 ? 9_999 : 0);
        tracker.last.handlers.close();
      }
      expect([session.state, session.counters.reconnects]).toEqual(['waiting', 1]);
      await clock.advance(Math.max(0, random * spread - 1));
      expect(tracker.sockets).toHaveLength(random ? 1 : 2);
      await clock.advance(1);
      expect(tracker.sockets).toHaveLength(2);
    }
  });

  test('that waits already waits no longer when this side turns out adrift, or awake', async () => {
    for (const woke of [false, true]) {
      const { clock, tracker, session, ready } = setUp({ random: () => 0.999 });
      await ready();
      tracker.last.handlers.close();
      await clock.advance(100);
      session.hurry(woke);
      await clock.advance(500);
      expect([tracker.sockets.length, session.counters.reconnects, session.state]).toEqual([2, 1, 'connecting']);
      // A socket from the network that is gone; a page that woke waits for it.
      session.hurry(woke);
      await clock.advance(500);
      expect(tracker.sockets).toHaveLength(woke ? 2 : 3);
    }
  });

  test('does not hurry past what the tracker asked, nor when there is nothing to come back to', async () => {
    const { clock, tracker, session, ready } = setUp();
    session.hurry();
    await clock.advance(1_000);
    expect(tracker.sockets).toEqual([]);
    await ready();
    tracker.last.say({ type: 'reconnect', after_ms: 3_000 });
    session.hurry();
    await clock.advance(2_999);
    expect(tracker.sockets).toHaveLength(1);
    await clock.advance(1);
    expect(tracker.sockets).toHaveLength(2);
    session.stop();
    session.hurry();
    await clock.advance(1_000);
    expect([tracker.sockets.length, session.state, clock.pending]).toEqual([2, 'stopped', 0]);
  });

  test('never comes back sooner than the tracker asked', async () => {
    const { clock, tracker, ready } = setUp();
    await ready();
    tracker.last.say({ type: 'reconnect', after_ms: 7_000 });
    expect(tracker.last.closed).toBe(1000);
    await clock.advance(6_999);
    expect(tracker.sockets).toHaveLength(1);
    await clock.advance(1);
    expect(tracker.sockets).toHaveLength(2);
    tracker.last.say({ type: 'error', code: 'overloaded', message: 'full', retry_after_ms: 60_000 });
    tracker.last.handlers.close();
    await clock.advance(59_999);
    expect(tracker.sockets).toHaveLength(2);
    await clock.advance(1);
    expect(tracker.sockets).toHaveLength(3);
  });

  test('gives up where trying again is of no use', async () => {
    const { clock, tracker, handlers, session } = setUp();
    session.start();
    await clock.advance(0);
    tracker.last.handlers.open();
    await settle();
    tracker.last.say({ type: 'error', code: 'bad-origin', message: 'no', hint: 'add it' });
    tracker.last.handlers.close();
    await clock.advance(120_000);
    expect(tracker.sockets).toHaveLength(1);
    expect(handlers.refused).toHaveBeenCalledWith(expect.objectContaining({ code: 'bad-origin' }));
    expect(clock.pending).toBe(0);
  });

  test('matches answers and errors to requests', async () => {
    const { clock, tracker, session, ready } = setUp();
    await ready();
    const join = { title: '/t', manifest: '/t/m.m3u8', role: 'full', want: 8 } as const;
    const one = session.join(join);
    const two = session.join(join);
    const three = session.join(join);
    const rejected = [
      expect(two).rejects.toMatchObject({ code: 'swarm-full', retry_after_ms: 500 }),
      expect(three).rejects.toMatchObject({ code: 'timeout' }),
    ];
    const ids = tracker.last.sent.filter(({ type }) => type === 'join').map(({ id }) => id);
    tracker.last.say({ type: 'error', id: ids[1], code: 'swarm-full', message: 'full', retry_after_ms: 500 });
    tracker.last.say({ type: 'joined', id: ids[0], swarm, viewers: 2, seeds: 1 });
    await expect(one).resolves.toMatchObject({ swarm, viewers: 2 });
    await clock.advance(10_000);
    await Promise.all(rejected);
  });

  test('keeps to the rate of the tracker', async () => {
    const limits = { message_bytes: 65_536, swarms: 4, messages_per_second: 11, links: 32 };
    const { clock, tracker, session, ready } = setUp();
    await ready(welcome({ limits }));
    for (let i = 0; i < 25; i++) session.send({ type: 'leave', swarm });
    const left = () => tracker.last.sent.filter(({ type }) => type === 'leave').length;
    expect(left()).toBe(10);
    await clock.advance(1_000);
    expect(left()).toBe(20);
    await clock.advance(1_000);
    expect(left()).toBe(25);
  });

  test('an update does not wait for signals that strangers have this viewer say', async () => {
    const limits = { message_bytes: 65_536, swarms: 4, messages_per_second: 11, links: 32 };
    const { clock, tracker, session, ready } = setUp();
    await ready(welcome({ limits }));
    const update = { type: 'update', swarm, saturated: false, links: 0, want: 3 } as const;
    for (let i = 0; i < 400; i++) session.send({ type: 'signal', swarm, to: 'to', link: 'link', kind: 'end' });
    await clock.advance(300);
    session.send(update);
    const of = (kind: string) => tracker.last.sent.filter(({ type }) => type === kind).length;
    expect([of('update'), of('signal')]).toEqual([1, 6]);
    for (let i = 0; i < 5; i++) session.send(update);
    expect(of('update')).toBe(4);
    await clock.advance(700);
    expect([of('update'), of('signal')]).toEqual([6, 10]);
    await clock.advance(100_000);
    expect(of('signal')).toBe(400);
  });

  test('does not try again what the browser forbids', async () => {
    const { clock, tracker, handlers, session } = setUp();
    tracker.refuse = true;
    session.start();
    await clock.advance(0);
    expect(handlers.forbidden.mock.calls).toEqual([['refused']]);
    const later = setUp();
    await later.ready();
    later.session.forbid('connect-src');
    for (const { state } of [session, later.session]) expect(state).toBe('refused');
    await clock.advance(100_000);
    await later.clock.advance(100_000);
    session.suspend();
    session.start();
    expect([clock.pending, tracker.sockets.length, later.tracker.sockets.length]).toEqual([0, 0, 1]);
    expect([handlers.lost.mock.calls, later.handlers.forbidden.mock.calls]).toEqual([[], [['connect-src']]]);
  });

  test('is taken up again after the page slept, no sooner than the tracker asked', async () => {
    const { clock, tracker, handlers, session, ready } = setUp();
    await ready();
    for (let i = 0; i < 60; i++) session.send({ type: 'leave', swarm });
    session.suspend();
    // What waited for its turn went out, and nothing happens until the page is back, however long that takes.
    expect(tracker.last.sent.filter(({ type }) => type === 'leave')).toHaveLength(60);
    expect([tracker.last.closed, clock.pending, session.state]).toEqual([1000, 0, 'idle']);
    expect(handlers.lost.mock.calls).toEqual([[0]]);
    await clock.advance(60_000);
    session.start();
    await clock.advance(0);
    tracker.last.handlers.open();
    await settle();
    expect(tracker.last.sent[0]).toMatchObject({ type: 'hello', ticket: 'ticket-1' });
    tracker.last.say(welcome({ resumed: true }));
    tracker.last.say({ type: 'reconnect', after_ms: 5_000 });
    session.suspend();
    session.start();
    await clock.advance(4_000);
    expect(tracker.sockets).toHaveLength(2);
    await clock.advance(1_000);
    expect(tracker.sockets).toHaveLength(3);
    session.stop();
    expect(clock.pending).toBe(0);
  });

  test('survives what is not a message', async () => {
    const { clock, tracker, session } = setUp();
    session.start();
    await clock.advance(0);
    tracker.last.handlers.open();
    await settle();
    tracker.last.handlers.message('{');
    tracker.last.handlers.message(new ArrayBuffer(3));
    tracker.last.say({ type: 'hologram' });
    tracker.last.say({ type: 'introduce', swarm, peers: [] });
    expect(session.counters).toMatchObject({ malformed: 2, unknown: 2 });
  });

  test('a stop leaves nothing behind', async () => {
    const { clock, tracker, handlers, session, ready } = setUp();
    await ready();
    const join = session.join({ title: '/t', manifest: '/t/m', role: 'full', want: 1 });
    const ended = expect(join).rejects.toMatchObject({ code: 'lost' });
    session.stop();
    await ended;
    tracker.last.handlers.close();
    tracker.last.say({ type: 'introduce', swarm, peers: [] });
    await clock.advance(120_000);
    expect(clock.pending).toBe(0);
    expect(tracker.sockets).toHaveLength(1);
    expect(handlers.introduce).not.toHaveBeenCalled();
    expect(handlers.lost).not.toHaveBeenCalled();
  });
});
