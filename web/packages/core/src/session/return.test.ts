import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { FakeClock, settle } from '../testing/clock.ts';
import { FakeTracker, welcome } from '../testing/socket.ts';
import { createSession, type SessionHandlers } from './session.ts';

interface Step {
  session_ms?: number;
  reconnect_ms?: number;
  retry_after_ms?: number;
  draw: number;
  wait_ms: number;
}

const file = new URL('../../../../../spec/vectors/return.json', import.meta.url);
const { cases } = JSON.parse(readFileSync(file, 'utf8')) as { cases: { name: string; steps: Step[] }[] };

const deaf = new Proxy({}, { get: () => () => {} }) as SessionHandlers;

describe('when a client comes back', () => {
  test('the file is whole', () => expect(cases.length).toBeGreaterThan(8));

  test.each(cases)('$name', async ({ steps }) => {
    const clock = new FakeClock();
    const tracker = new FakeTracker();
    let draw = 0;
    createSession({
      url: 'wss://tracker.example.com/',
      client: 'leeway-js/test',
      clock,
      random: () => draw / 1024,
      openSocket: tracker.open,
      handlers: deaf,
    }).start();
    await clock.advance(0);
    for (const [i, step] of steps.entries()) {
      const { last } = tracker;
      draw = step.draw;
      if (step.session_ms !== undefined) {
        last.handlers.open();
        await settle();
        last.say(welcome());
        await clock.advance(step.session_ms);
      }
      if (step.retry_after_ms !== undefined) {
        last.say({ type: 'error', code: 'overloaded', message: 'full', retry_after_ms: step.retry_after_ms });
      }
      if (step.reconnect_ms !== undefined) last.say({ type: 'reconnect', after_ms: step.reconnect_ms });
      last.handlers.close();
      if (step.wait_ms > 0) {
        await clock.advance(step.wait_ms - 1);
        expect(tracker.sockets, `step ${i}, a moment before`).toHaveLength(i + 1);
        await clock.advance(1);
      } else await clock.advance(0);
      expect(tracker.sockets, `step ${i}`).toHaveLength(i + 2);
    }
  });
});
