import { describe, expect, it } from 'vitest';
import type { Clock } from '../ports.ts';
import { join, Viewer } from './actors.ts';
import { Film } from './film.ts';
import { fast, figures, fine, id, setUp, signer } from './scene.ts';
import { sleeping, throttled } from './world.ts';

/** Four viewers, of which some have a clock of their own; none may be dropped for it. */
const watch = async (clocks: (Clock | undefined)[], film: Film, line = fast, delayMs = 10) => {
  const s = setUp(film, line, delayMs);
  for (const make of clocks) {
    s.viewer(undefined, make && { clock: make });
    await s.run(5_000);
  }
  await s.run(film.segments.length * film.durationMs);
  return s;
};

describe('a viewer in a hidden tab', () => {
  it.each([
    ['with timers once a second', 1_000, new Film(60, 4000, 300_000)],
    ['with timers once a minute', 60_000, new Film(60, 4000, 300_000)],
    ['with timers once a second, and segments of two', 1_000, new Film(120, 2000, 300_000)],
  ])('%s is not dropped and drops no other', async (_, everyMs, film) => {
    const { world, network, seed, viewers, run } = setUp(film);
    const page = (n: number, clock?: Clock) => {
      network.addNode(id(n), fast);
      const v = new Viewer(id(n), network, film, signer, clock && { clock });
      join(network, v, [seed, ...viewers]);
      v.play();
      viewers.push(v);
    };
    // The first two are hidden: between them there is at times no viewer whose timers run.
    for (const n of [1, 2]) {
      page(n, throttled(world, everyMs));
      await run(5_000);
    }
    page(3);
    await run(240_000);
    for (const v of viewers) expect([v.unlinked, v.engine.snapshot().peers.length]).toEqual([[], 3]);
    expect(figures(viewers, film)).toMatchObject({ wrong: 0, errors: 0 });
    expect(viewers[2]!.results.length).toBe(film.segments.length);
    expect(viewers[2]!.stalls).toBe(0);
    // One whose timers have a minute is linked and no more; the others send, and are sent something.
    if (everyMs > 1_000) return;
    for (const v of viewers.slice(0, 2)) expect(v.engine.snapshot().totals.uploaded.direct).toBeGreaterThan(1_000_000);
    expect(viewers[1]!.bytes().peer).toBeGreaterThan(1_000_000);
  });
});

describe('a viewer on a slow line', () => {
  it.each([
    // Three ask it at once: below 5.5 kB/s for each of them it would be a peer that trickles, by the specification.
    ['of 200 kbit/s up', { up: 25_000, down: 625_000 }, 10],
    ['of 1 Mbit/s up, 300 ms away', { up: 125_000, down: 1_250_000 }, 150],
  ])('%s is not dropped', async (_, line, delayMs) => {
    const film = new Film(25, 4000, 300_000);
    const { viewers } = await watch([undefined, undefined, undefined, undefined], film, line, delayMs);
    for (const v of viewers) expect([v.unlinked, v.engine.snapshot().peers.length]).toEqual([[], 4]);
    expect(figures(viewers, film)).toMatchObject(fine);
    // The first one has been asked.
    expect(viewers[0]!.engine.snapshot().totals.uploaded.direct).toBeGreaterThan(0);
  });

  // Twenty of them are in docs/experiments/peer-protocol.md, "Far away, on a thin line".
  const far = [
    [1.2, 400],
    [1.2, 600],
    [1.6, 600],
    [2, 600],
    [3.2, 700],
  ].map(([mbit, rttMs]) => ({ mbit: mbit!, rttMs: rttMs! }));
  it.each(far)('of $mbit Mbit/s each way, $rttMs ms away is not dropped', async ({ mbit, rttMs }) => {
    const film = new Film(25, 4000, 300_000);
    const line = { up: mbit * 125_000, down: mbit * 125_000 };
    const { viewers } = await watch([undefined, undefined, undefined, undefined], film, line, rttMs / 2);
    for (const v of viewers) expect([v.unlinked, v.engine.snapshot().peers.length]).toEqual([[], 4]);
    expect(figures(viewers, film)).toMatchObject(fine);
    // The first one has been asked.
    expect(viewers[0]!.engine.snapshot().totals.uploaded.direct).toBeGreaterThan(0);
  });
});

describe('a laptop that is closed', () => {
  const doze = async (ms: number) => {
    const film = new Film(30, 4000, 300_000);
    const s = setUp(film);
    const sleeper = id(2);
    s.viewer();
    await s.run(5_000);
    s.viewer(undefined, { clock: sleeping(s.world, () => s.network.wakesAt(sleeper)) });
    await s.run(5_000);
    s.viewer();
    await s.run(9_000);
    s.network.sleep(sleeper, ms);
    await s.run(100_000);
    return { ...s, film };
  };

  it('for ten seconds keeps its links', async () => {
    const { viewers, film } = await doze(10_000);
    for (const v of viewers) expect(v.unlinked).toEqual([]);
    expect(figures([viewers[0]!, viewers[2]!], film)).toMatchObject(fine);
  });

  it('for a minute loses them, and no peer is banned', async () => {
    const { viewers, film, network, run } = await doze(60_000);
    const [first, sleeper, third] = viewers as [Viewer, Viewer, Viewer];
    for (const v of [first, third])
      expect(v.unlinked).toMatchObject([{ peer: sleeper.id, reason: 'timeout', banned: false }]);
    for (const u of sleeper.unlinked) expect(u.banned).toBe(false);
    expect(figures([first, third], film)).toMatchObject(fine);
    join(network, sleeper, [first, third]);
    await run(2_000);
    for (const v of [first, third]) expect(v.engine.snapshot().peers.map((p) => p.peer)).toContain(sleeper.id);
    expect(sleeper.engine.snapshot().peers.map((p) => p.peer)).toEqual(expect.arrayContaining([first.id, third.id]));
    expect(sleeper.errors).toEqual([]);
  });
});

describe('a viewer whose cache is small, far away', () => {
  it('says what it gave up before it rejects', async () => {
    const film = new Film(40, 4000, 300_000);
    const { seed, viewers, viewer, run } = setUp(film, fast, 200);
    for (let n = 0; n < 4; n++) {
      viewer([seed, ...viewers], { cacheBytes: 1_000_000 });
      await run(8_000); // so that what is asked for is given up just then
    }
    await run(150_000);
    expect(figures(viewers, film)).toMatchObject(fine);
    for (const v of viewers) expect(v.unlinked).toEqual([]);
    const rejected = viewers.reduce((n, v) => n + (v.engine.snapshot().counters.rejected_3 ?? 0), 0);
    expect(rejected).toBeGreaterThan(0);
  });
});
