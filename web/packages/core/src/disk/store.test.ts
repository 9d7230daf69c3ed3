import { describe, expect, it } from 'vitest';
import { FakeClock, settle } from '../testing/clock.ts';
import { FakeDisk } from '../testing/disk.ts';
import type { Entry } from './entries.ts';
import { createStore, keepMs } from './store.ts';

const id = (n: number) => n.toString(16).padStart(32, '0');
const of = (n: number): Omit<Entry, 'bytes' | 'used'> => ({
  id: id(n),
  site: 'demo',
  name: `/${n}.ts`,
  keyId: 'aa',
  issuedAt: 1,
  notAfter: 2,
});

const setUp = (disk = new FakeDisk()) => {
  const clock = new FakeClock();
  /** A tab that keeps segments. */
  const tab = async () => {
    const counters: Record<string, number> = {};
    const store = createStore(disk.parts(), clock);
    const close = store.use((name, n = 1) => {
      counters[name] = (counters[name] ?? 0) + n;
    });
    await settle();
    const keep = (n: number, size = 10, most = 1_000) => store.write(of(n), [new Uint8Array(size).fill(n)], most);
    return { store, close, counters, keep };
  };
  return { clock, disk, tab };
};

describe('the disk', () => {
  it('has what an earlier page kept', async () => {
    const { tab, clock, disk } = setUp();
    const first = await tab();
    await first.keep(1);
    await first.keep(2);
    first.store.remove(id(2));
    await clock.advance(5_000);
    first.close();
    await settle();
    expect([clock.pending, disk.listeners]).toEqual([0, 0]);
    const { store } = await tab();
    expect(store.entries()).toEqual([{ ...of(1), bytes: 10, used: disk.date }]);
    expect([...(await store.read(id(1)))!]).toEqual(new Array(10).fill(1));
    expect(disk.segments).toEqual([id(1)]);
  });

  it('writes its list also as the page goes', async () => {
    const { tab } = setUp();
    const first = await tab();
    await first.keep(1);
    first.close();
    await settle();
    expect((await tab()).store.entries()).toHaveLength(1);
  });

  it('deletes files that the list does not name, and what has not been used for a week', async () => {
    const { tab, clock, disk } = setUp();
    const first = await tab();
    await first.keep(1);
    disk.date += keepMs / 2;
    await first.keep(2);
    await clock.advance(5_000);
    first.close();
    await settle();
    disk.files.set(id(3), new Uint8Array(5));
    disk.date += keepMs / 2;
    const { store } = await tab();
    expect(store.entries().map((e) => e.id)).toEqual([id(2)]);
    expect(disk.segments).toEqual([id(2)]);
  });

  it('keeps no longer what a clock that was ahead has dated', async () => {
    const { tab, clock, disk } = setUp();
    disk.date += 100 * keepMs;
    const first = await tab();
    await first.keep(1);
    await clock.advance(5_000);
    first.close();
    await settle();
    disk.date -= 100 * keepMs;
    const second = await tab();
    await clock.advance(5_000);
    second.close();
    await settle();
    disk.date += keepMs;
    expect((await tab()).store.entries()).toEqual([]);
  });

  it('evicts what was used least recently, within the bound', async () => {
    const { tab, disk } = setUp();
    const { store, keep, counters } = await tab();
    for (const n of [1, 2, 3]) await keep(n, 10, 30);
    store.used(id(1));
    await keep(4, 10, 30);
    expect(disk.segments.sort()).toEqual([id(1), id(3), id(4)]);
    await keep(5, 31, 30);
    expect(disk.segments).toHaveLength(3);
    store.trim(10);
    await settle();
    expect(disk.segments).toEqual([id(4)]);
    expect(counters).toMatchObject({ disk_evicted: 3, disk_full: 1, disk_written_bytes: 40 });
  });

  it('leaves half of what the browser has left to others', async () => {
    const { tab, disk } = setUp();
    const { keep, counters } = await tab();
    disk.quota = 100;
    await keep(1, 40);
    await keep(2, 40);
    await keep(3, 40);
    expect(disk.bytes).toBeLessThanOrEqual(70);
    expect(disk.segments).toEqual([id(3)]);
    expect(counters.disk_evicted).toBe(2);
  });

  it('makes room when the browser has less than it said, and goes on', async () => {
    const { tab, disk } = setUp();
    const { keep, counters } = await tab();
    for (const n of [1, 2, 3, 4]) await keep(n);
    disk.failing = 'QuotaExceededError';
    await keep(5);
    await settle();
    expect(disk.segments).toEqual([id(3), id(4)]);
    disk.failing = undefined;
    await keep(6);
    expect(disk.files.get(id(6))).toHaveLength(10);
    expect(counters).toMatchObject({ disk_full: 1, disk_evicted: 2 });
  });

  it.each([
    ['has no private file system', new TypeError('navigator.storage.getDirectory is not a function')],
    ['has none for this window', new DOMException('private', 'SecurityError')],
  ])('keeps nothing in a browser that %s', async (_, missing) => {
    const { tab, disk, clock } = setUp();
    disk.missing = missing;
    const { store, keep, counters, close } = await tab();
    await keep(1);
    expect([store.entries(), await store.read(id(1)), disk.files.size]).toEqual([[], undefined, 0]);
    expect(counters).toEqual({ disk_none: 1 });
    close();
    expect([clock.pending, disk.listeners]).toEqual([0, 0]);
  });

  it('is one tab’s at a time: the next has it when that is gone, or sleeps', async () => {
    const { tab, clock, disk } = setUp();
    const first = await tab();
    await first.keep(1);
    const second = await tab();
    await clock.advance(1_000);
    expect(second.counters).toEqual({ disk_busy: 1 });
    await second.keep(2);
    expect(second.store.entries()).toEqual([]);
    first.close();
    await settle();
    expect(second.store.entries().map((e) => e.id)).toEqual([id(1)]);
    const third = await tab();
    disk.sleep(true);
    await settle();
    expect([second, third].map(({ store }) => store.entries().length)).toEqual([0, 0]);
    disk.sleep(false);
    await settle();
    expect([second, third].map(({ store }) => store.entries().length)).toEqual([1, 0]);
  });

  it('is lost to what deletes it, and keeps nothing from then on', async () => {
    const { tab, disk, clock } = setUp();
    const { keep, store, counters, close } = await tab();
    await keep(1);
    disk.steal();
    await keep(2);
    await clock.advance(10_000);
    expect([store.entries(), disk.files.size]).toEqual([[], 0]);
    expect(counters).toMatchObject({ disk_lost: 1 });
    close();
    expect([clock.pending, disk.listeners]).toEqual([0, 0]);
  });

  it('is closed by an error that it does not know', async () => {
    const { tab, disk } = setUp();
    const { keep, store, counters } = await tab();
    await keep(1);
    disk.failing = 'InvalidStateError';
    await keep(2);
    await settle();
    expect([store.entries(), counters.disk_failed]).toEqual([[], 1]);
  });

  it('forgets a file that was deleted behind its back', async () => {
    const { tab, disk } = setUp();
    const { keep, store } = await tab();
    await keep(1);
    disk.files.clear();
    expect([await store.read(id(1)), store.entries()]).toEqual([undefined, []]);
  });

  it('is shared by the titles of a page', async () => {
    const { disk, clock } = setUp();
    const store = createStore(disk.parts(), clock);
    const [one, two] = [store.use(() => {}), store.use(() => {})];
    await settle();
    one();
    one();
    await store.write(of(1), [new Uint8Array(1)], 10);
    expect(store.entries()).toHaveLength(1);
    two();
    await settle();
    expect([store.entries().length, disk.listeners]).toEqual([0, 0]);
  });
});
