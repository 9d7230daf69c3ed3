import { expect, it } from 'vitest';
import { createStats } from '../stats/stats.ts';
import { FakeClock, settle } from '../testing/clock.ts';
import { createSeldom, type Seldom } from './seldom.ts';
import type { Shared } from './shared.ts';

it('asks for the script once, and where it does not come after 10 s, 20 s, and so on', async () => {
  const clock = new FakeClock();
  const stats = createStats();
  const shared = { clock, stats, settled: () => {} } as unknown as Shared;
  const seldom = {} as Seldom;
  let asked = 0;
  const need = createSeldom(shared, async () => {
    if (++asked < 4) throw new Error('404');
    return seldom;
  });
  const had: unknown[] = [];
  const use = async () => {
    need((s) => had.push(s));
    await settle();
  };
  for (const [n, wait] of [10_000, 20_000, 40_000].entries()) {
    await use();
    clock.sleep(wait - 1);
    await use();
    expect([asked, had]).toEqual([n + 1, []]);
    clock.sleep(1);
  }
  await use();
  await use();
  expect([asked, had]).toEqual([4, [seldom, seldom]]);
  expect(stats.counters).toEqual({ script_missing: 3 });
});
