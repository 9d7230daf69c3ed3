import { describe, expect, it } from 'vitest';
import { FakeClock } from '../testing/clock.ts';
import type { TabsPort } from './ports.ts';
import { createTabs } from './tabs.ts';

/** A browser whose tabs hear each other. */
const browser = () => {
  const clock = new FakeClock();
  const ports = new Set<TabsPort>();
  let posts = 0;
  let named = 0;
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
    const seen = { parts: 0, urgent: false };
    const bases: [string, number][] = [];
    const tabs = createTabs({
      port,
      clock,
      random: () => ++named / 1000,
      bases: () => bases,
      changed: (parts, urgent) => Object.assign(seen, { parts, urgent }),
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

  it('hear at once that another one has foreground, and soon that it has none', async () => {
    const b = browser();
    const one = b.open();
    const two = b.open();
    await b.clock.advance(2_000);
    one.tabs.urgent(true);
    expect(two.seen.urgent).toBe(true);
    expect(one.seen.urgent).toBe(false);
    const posts = b.posts();
    for (let i = 0; i < 50; i++) {
      one.tabs.urgent(false);
      await b.clock.advance(1);
      one.tabs.urgent(true);
    }
    expect(b.posts()).toBe(posts);
    one.tabs.urgent(false);
    await b.clock.advance(100);
    expect(two.seen.urgent).toBe(false);
  });

  it('do not wait for a tab that has gone in the middle of its foreground', async () => {
    const b = browser();
    const one = b.open();
    const two = b.open();
    await b.clock.advance(2_000);
    one.tabs.urgent(true);
    await b.clock.advance(20_000);
    expect(two.seen.urgent).toBe(true); // it is said again and again
    one.tabs.stop();
    await b.clock.advance(8_000);
    expect(two.seen.urgent).toBe(false);
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
    await b.clock.advance(2_000);
    one.tabs.urgent(true);
    one.tabs.urgent(false);
    await b.clock.advance(10_000);
    expect(b.posts()).toBe(0);
    for (const m of [
      null,
      'x',
      {},
      { leeway: 1 },
      { leeway: 2, tab: 1, urgent: true },
      { leeway: 1, tab: 1, bases: [[1, 2]] },
    ]) {
      one.port.onMessage?.(m);
    }
    expect(one.seen.urgent).toBe(false);
  });
});
