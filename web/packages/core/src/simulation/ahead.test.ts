import { expect, test } from 'vitest';
import type { EngineDeps } from '../enginedeps.ts';
import type { AheadRules } from '../transfer/ahead.ts';
import { Film } from './film.ts';
import { figures, fine, setUp } from './scene.ts';

const everything: AheadRules = {
  allowed: true,
  waste_bytes: 0,
  role: 'full',
  battery: false,
};

/** A viewer of 100 kB/s, and one that comes 60 s later; with lines of so many bytes per second, that one chooses its renditions. */
const scene = async (rules?: Partial<AheadRules>, deps: Partial<EngineDeps> = {}, first = {}, down?: number) => {
  const film = new Film(60, 4000, 400_000);
  const all = setUp(film, down ? { up: 12_500_000, down } : undefined);
  const given = rules && (() => ({ ...everything, ...rules }));
  Object.assign(all.viewer(undefined, { ahead: () => everything }), first);
  await all.run(60_000);
  const late = all.viewer(undefined, { ahead: given, ...deps }, !!down);
  late.tells = 32;
  const totals = () => late.engine.snapshot().totals;
  /** Of what is held, ms. */
  const end = () => Math.max(...late.engine.snapshot().ranges.map((r) => r.toMs));
  return { ...all, film, late, totals, end };
};

test('what follows is fetched from viewers, behind everything else', async () => {
  const { late, run, totals, end, viewers, film } = await scene({});
  await run(80_000);
  expect(totals().prefetched_bytes).toBeGreaterThan(1_000_000);
  // The playhead is at 80 s, and the player takes 30 s ahead of it.
  expect(end()).toBeGreaterThan(120_000);
  expect(totals()).toMatchObject({ prefetch_wasted_bytes: 0, wasted_bytes: 0, duplicate_bytes: 0 });
  await run(200_000);
  expect(late.results.length).toBe(60);
  expect(figures(viewers, film)).toMatchObject(fine);
  expect(totals()).toMatchObject({ prefetch_wasted_bytes: 0, wasted_bytes: 0, duplicate_bytes: 0 });
  expect(late.bytes(3)).toMatchObject({ origin: 0, seed: 0 });
});

test('a viewer that fetches nothing ahead, since it may have no end, serves one that does', async () => {
  const { run, totals, viewers } = await scene({}, {}, { live: true });
  await run(80_000);
  expect(totals().prefetched_bytes).toBeGreaterThan(1_000_000);
  expect(viewers[0]!.engine.snapshot().totals.prefetched_bytes).toBe(0);
});

test('a viewer that sends says how it stands, and what its uplink carries', async () => {
  const all = setUp(new Film(60, 4000, 400_000));
  const first = all.viewer(undefined, { ahead: () => everything });
  await all.run(60_000);
  expect(first.engine.takeStats().pacing).toBeUndefined();
  all.viewer(undefined, { ahead: () => everything }).tells = 32;
  await all.run(30_000);
  const { pacing } = first.engine.takeStats();
  expect(pacing!.base_us).toBeGreaterThan(0);
  expect(pacing!.rate).toBeGreaterThan(12_500);
});

test('a viewer sends no more than its site allows, until the site allows more', async () => {
  const all = setUp(new Film(60, 4000, 400_000));
  const rules = { ...everything, upload_kbps: 400 };
  const first = all.viewer(undefined, { ahead: () => rules });
  await all.run(60_000);
  all.viewer(undefined, { ahead: () => everything }).tells = 32;
  const sent = async (ms: number) => {
    const before = first.engine.snapshot().totals.uploaded.direct;
    await all.run(ms);
    return (first.engine.snapshot().totals.uploaded.direct - before) / (ms / 1000);
  };
  const capped = await sent(20_000);
  rules.upload_kbps = 0;
  expect(capped).toBeGreaterThan(40_000);
  expect(capped).toBeLessThan(51_000);
  expect(await sent(20_000)).toBeGreaterThan(100_000);
});

test('a segment is left out for the line to be measured by, once a minute, where renditions are chosen', async () => {
  const { late, run, totals } = await scene({}, {}, {}, 380_000);
  await run(240_000);
  const looks = late.results.filter(({ reason }) => reason === 'policy').length;
  expect(looks).toBeGreaterThanOrEqual(2);
  expect(looks).toBeLessThanOrEqual(5);
  expect(totals().prefetched_bytes).toBeGreaterThan(5_000_000);
});

test.each([
  ['it is not mentioned', undefined],
  ['the site does not allow it', { allowed: false }],
  ['the viewer gives nothing back', { role: 'leech' }],
])('nothing is fetched ahead where %s', async (_, rules) => {
  const { late, run, totals, end } = await scene(rules);
  await run(80_000);
  expect(late.results.length).toBeGreaterThan(25);
  expect(totals()).toMatchObject({ prefetched_bytes: 0, promotions: 0 });
  expect(end()).toBeLessThanOrEqual(120_000);
});

test('a viewer that leaves loses no more than the budget, and tells', async () => {
  const lost: number[] = [];
  for (const battery of [false, true]) {
    const { late, run, totals } = await scene({ battery });
    await run(80_000);
    const received = Object.values(totals().bytes).reduce((a, b) => a + b);
    late.engine.takeStats();
    const { prefetch_wasted_bytes, wasted_bytes } = late.engine.takeStats(true);
    expect(prefetch_wasted_bytes).toBeGreaterThan(0);
    expect(prefetch_wasted_bytes).toBeLessThanOrEqual((1_048_576 + received / 10) / (battery ? 4 : 1));
    expect(wasted_bytes).toBe(prefetch_wasted_bytes);
    expect(late.engine.takeStats(true).prefetch_wasted_bytes).toBe(0);
    lost.push(prefetch_wasted_bytes);
  }
  expect(lost[1]!).toBeLessThan(lost[0]!);
});

test('a viewer that seeks takes back what is on its way, and what is skipped is counted', async () => {
  const { late, run, totals } = await scene({});
  await run(80_000);
  late.seek(50);
  await run(500);
  const { prefetched_bytes, prefetch_wasted_bytes } = totals();
  expect(prefetch_wasted_bytes).toBeGreaterThan(500_000);
  expect(prefetch_wasted_bytes).toBeLessThan(prefetched_bytes);
});

test('a holder that refuses does not keep another one from bringing what follows', async () => {
  const all = setUp(new Film(60, 4000, 400_000));
  all.viewer(undefined, { ahead: () => ({ ...everything, allowed: false }) });
  await all.run(60_000);
  all.viewer(undefined, { ahead: () => everything });
  await all.run(60_000);
  const late = all.viewer(undefined, { ahead: () => everything });
  late.tells = 32;
  await all.run(60_000);
  expect(late.engine.snapshot().totals.prefetched_bytes).toBeGreaterThan(1_000_000);
});
