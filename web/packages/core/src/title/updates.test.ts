import { describe, expect, it } from 'vitest';
import type { Links } from '../link/links.ts';
import type { Welcome } from '../session/messages.ts';
import type { TrackerSession } from '../session/session.ts';
import { FakeClock } from '../testing/clock.ts';
import { createUpdates } from './updates.ts';

const setUp = () => {
  const clock = new FakeClock();
  const links = { want: 4, open: 1 };
  const sent: { saturated: boolean; want: number; swarm: string }[] = [];
  const state = { swarm: 's' as string | undefined, reports: 0 };
  const session = { state: 'ready', send: (m: never) => void sent.push(m) };
  const updates = createUpdates({
    clock,
    session: session as unknown as TrackerSession,
    links: () => links as Links,
    swarm: () => state.swarm,
    range: () => undefined,
    sendStats: () => state.reports++,
    caught: (_, error) => {
      throw error;
    },
  });
  const begin = () => updates.begin({ update_interval_ms: 1000, stats_interval_ms: 500 } as Welcome);
  return { clock, links, sent, state, session, updates, begin };
};

describe('updates', () => {
  it('go out regularly, until the end', async () => {
    const { clock, sent, state, updates, begin } = setUp();
    begin();
    await clock.advance(2100);
    expect(sent.map(({ want, saturated, swarm }) => [want, saturated, swarm])).toEqual([
      [4, false, 's'],
      [4, false, 's'],
    ]);
    expect(state.reports).toBe(4);
    updates.stop();
    await clock.advance(60_000);
    expect([sent.length, state.reports]).toEqual([2, 4]);
  });

  it('go out soon after a change, together with what else changes soon', async () => {
    const { clock, links, sent, updates, begin } = setUp();
    begin();
    links.want = 0;
    for (let n = 0; n < 3; n++) {
      updates.soon();
      await clock.advance(50);
    }
    await clock.advance(50);
    expect(sent.map(({ saturated }) => saturated)).toEqual([true]);
  });

  it.each([
    ['no swarm', undefined, 'ready'],
    ['no session', 's', 'connecting'],
  ])('do not go out where there is %s', async (_, swarm, status) => {
    const { clock, sent, state, session, updates, begin } = setUp();
    begin();
    state.swarm = swarm;
    session.state = status;
    updates.soon();
    await clock.advance(500);
    expect(sent).toEqual([]);
  });

  it.each([
    [4, 4, 1, false],
    [4, 3, 1, true],
    [3, 4, 1, false],
    [3, 4, 0, true],
  ])('tell of links that came or went: want %i after %i, %i open', async (want, last, open, told) => {
    const { clock, links, sent, updates, begin } = setUp();
    links.want = last;
    begin();
    await clock.advance(1000);
    links.want = want;
    links.open = open;
    updates.changed();
    await clock.advance(200);
    expect(sent.length).toBe(told ? 2 : 1);
  });
});
