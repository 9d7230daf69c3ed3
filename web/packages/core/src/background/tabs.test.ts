import { describe, expect, it } from 'vitest';
import { FakeClock } from '../testing/clock.ts';
import type { TabsPort } from './ports.ts';
import { createTabs } from './tabs.ts';

/** A browser whose tabs hear each other. */
const browser = () => {
  const clock = new FakeClock();
  const ports = new Set<TabsPort>();
  let posts = 0;
  const open = () => {
    const port: TabsPort = {
      count: async () => ports.size,
      post: (message) => {
        posts++;
        for (const p of ports) if (p !== port) p.onMessage?.(structuredClone(message));
      },
      close: () => void ports.delete(port),
    };
    ports.add(port);
    const seen = { parts: 0 };
    const bases: [string, number][] = [];
    const tabs = createTabs({
      port,
      clock,
      bases: () => bases,
      counted: (parts) => Object.assign(seen, { parts }),
    });
    return { tabs, seen, bases, port };
  };
  return { clock, open, posts: () => posts };
};

describe('the tabs of one browser', () => {
  it('count each other, and miss those that are gone', async () => {
    const b = browser();
    const one = b.open();
    await b.clock.advance(0);
    expect(one.seen.parts).toBe(1);
    const two = b.open();
    await b.clock.advance(2_000);
    expect([one.seen.parts, two.seen.parts]).toEqual([2, 2]);
    two.tabs.stop();
    await b.clock.advance(2_000);
    expect(one.seen.parts).toBe(1);
    one.tabs.stop();
    expect(b.clock.pending).toBe(0);
  });

  it('tell what they know of the ways to their peers', async () => {
    const b = browser();
    const one = b.open();
    const two = b.open();
    one.bases.push(['aa', 40_000]);
    await b.clock.advance(2_000);
    expect(two.tabs.base('aa')).toBe(40_000);
    expect(two.tabs.base('bb')).toBe(0);
    two.tabs.remember('aa', 50_000);
    expect(two.tabs.base('aa')).toBe(40_000);
    one.tabs.stop();
    await b.clock.advance(600_000);
    expect(two.tabs.base('aa')).toBe(0);
    for (let i = 0; i < 100; i++) two.tabs.remember(`peer ${i}`, 1000 + i);
    expect(two.tabs.base('peer 35')).toBe(0);
    expect(two.tabs.base('peer 36')).toBe(1036);
  });

  it('say nothing while they are alone, and take nothing that is none of theirs', async () => {
    const b = browser();
    const one = b.open();
    one.bases.push(['aa', 40_000]);
    await b.clock.advance(12_000);
    expect(b.posts()).toBe(0);
    const bases = [['bb', 30_000]];
    for (const m of [
      null,
      'x',
      {},
      { leeway: 1 },
      { leeway: 2, bases },
      {
        leeway: 1,
        bases: [
          [1, 2],
          ['bb', '3'],
        ],
      },
    ]) {
      one.port.onMessage?.(m);
    }
    expect(one.tabs.base('bb')).toBe(0);
    // An older version says more.
    one.port.onMessage?.({ leeway: 1, tab: 1, urgent: true, bases });
    expect(one.tabs.base('bb')).toBe(30_000);
  });
});
