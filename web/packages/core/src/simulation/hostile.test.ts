import { describe, expect, it } from 'vitest';
import { Film } from './film.ts';
import { Hostile, type Malice } from './hostile.ts';
import { fast, figures, fine, id, setUp, signer } from './scene.ts';

/** Three viewers and a seed; the hostile one is there before them and holds, it says, all that the first will need. */
const attack = async (malice: Malice) => {
  const film = new Film(16, 4000, 300_000);
  const { world, network, seed, viewers, viewer, run } = setUp(film);
  network.addNode(id(14), fast);
  const hostile = new Hostile(id(14), network, film, signer, malice);
  const begin = world.now();
  for (let n = 0; n < 3; n++) {
    viewer([hostile, seed, ...viewers]);
    await run(5_000);
  }
  await run(60_000);
  const f = figures(viewers, film);
  expect(viewers.map((v) => v.results.length)).toEqual([16, 16, 16]);
  expect(f).toMatchObject(fine);
  expect(f.offload).toBeGreaterThanOrEqual(0.5);
  for (const v of viewers) expect(v.unlinked.filter((u) => u.peer !== hostile.id)).toEqual([]);
  return { begin, hostile, viewers };
};

describe('a hostile viewer that is asked', () => {
  /** Reason, whether it is banned, and how long after the first request at most, ms: the bounds of the specification. */
  const kinds: [Malice, string, boolean, number][] = [
    ['flip', 'bad-piece', true, 1_100],
    ['flip-then-stall', 'bad-piece', true, 1_100],
    ['not-held', 'false-have', true, 100],
    ['withdrawn', 'false-have', true, 100],
    ['out-of-range', 'false-have', true, 100],
    ['silent', 'stalled', false, 6_300],
    ['silent-mid-piece', 'stalled', false, 6_300],
    // Its first bytes make it look a second away, and pay for nothing.
    ['trickle', 'stalled', false, 10_300],
  ];
  it.each(kinds)('%s is out in time, whichever viewer asked it', async (malice, reason, banned, within) => {
    const { hostile, viewers } = await attack(malice);
    expect(hostile.asked.size).toBeGreaterThan(0);
    expect(viewers[0]!.unlinked.length).toBe(1);
    for (const v of viewers) {
      // A viewer that has quicker holders does not ask it, or takes back what it asked for.
      const { since, longest } = hostile.asked.get(v.id) ?? { since: 0, longest: 0 };
      expect(longest).toBeLessThanOrEqual(within);
      for (const u of v.unlinked) {
        expect(u).toMatchObject({ reason, banned });
        expect(u.at - since).toBeLessThanOrEqual(within);
      }
      // The tracker hears which peer it banned, and what it had from each of the others.
      const { peers, bytes } = v.engine.takeStats();
      const blamed = Object.keys(peers!).filter((peer) => peers![peer]!.blame);
      expect(blamed).toEqual(banned && v.unlinked.length > 0 ? [hostile.id] : []);
      expect(Object.values(peers!).reduce((sum, p) => sum + (p.in ?? 0), 0)).toBe(bytes.peer);
      if (reason === 'bad-piece') expect(v.engine.snapshot().totals.rejected_bytes).toBeLessThanOrEqual(8 * 16384);
    }
  });
});

describe('a hostile viewer that need not be asked', () => {
  const kinds: [Malice, string, boolean, number][] = [
    ['garbage', 'protocol-error', true, 500],
    ['forger', 'protocol-error', true, 10_000],
    ['replayer', 'protocol-error', true, 10_000],
    ['flood', 'over-limit', true, 3_000],
    ['no-hello', 'timeout', false, 10_500],
  ];
  it.each(kinds)('%s is out in time', async (malice, reason, banned, within) => {
    const { begin, viewers } = await attack(malice);
    for (const [n, v] of viewers.entries()) {
      // They are known once a viewer asked them for a certificate.
      if (/forger|replayer/.test(malice) && n > 0 && v.unlinked.length === 0) continue;
      expect(v.unlinked).toMatchObject([{ reason, banned }]);
      expect(v.unlinked[0]!.at - begin - n * 5_000).toBeLessThanOrEqual(within);
    }
  });
});

describe('a hostile viewer that stays within the rules', () => {
  it.each<Malice>(['busy', 'fickle'])('%s is asked less and less', async (malice) => {
    const { hostile, viewers } = await attack(malice);
    expect(hostile.asked.size).toBeGreaterThan(0);
    for (const v of viewers) expect(v.unlinked).toEqual([]);
    // Four pieces at a time, after 0.2, 0.4, 0.8 … 25.6, 30 s; three viewers.
    expect(hostile.requests).toBeLessThanOrEqual(3 * 4 * 11);
  });

  it.each<Malice>(['deaf', 'late'])('%s is out at its third stall', async (malice) => {
    const { begin, hostile, viewers } = await attack(malice);
    expect(hostile.asked.size).toBeGreaterThan(0);
    expect(viewers[0]!.unlinked).toMatchObject([{ reason: 'stalled', banned: false }]);
    expect(viewers[0]!.unlinked[0]!.at - begin).toBeLessThanOrEqual(30_000);
  });
});

describe('a hostile viewer that is too slow for segments of two seconds', () => {
  /** What it does, how often it is asked for a piece at most, and whether it is out. */
  const kinds: [Malice, number, boolean][] = [
    ['silent', 20, true],
    ['drip', 35, false],
  ];
  it.each(kinds)('%s holds no viewer up', async (malice, asked, out) => {
    const film = new Film(40, 2000, 500_000);
    const { world, network, seed, viewer, run } = setUp(film, { up: 2_500_000, down: 2_500_000 });
    network.addNode(id(14), fast);
    const hostile = new Hostile(id(14), network, film, signer, malice);
    const begin = world.now();
    const v = viewer([hostile, seed]);
    await run(25_000);
    // 20 s and more are there beside what was played.
    expect(v.results.length).toBeGreaterThanOrEqual(20);
    await run(75_000);
    expect(v.results.length).toBe(40);
    expect(figures([v], film)).toMatchObject(fine);
    expect(hostile.requests).toBeGreaterThan(0);
    expect(hostile.requests).toBeLessThanOrEqual(asked);
    expect(v.unlinked).toMatchObject(out ? [{ reason: 'stalled', banned: false }] : []);
    if (out) expect(v.unlinked[0]!.at - begin).toBeLessThanOrEqual(20_000);
  });
});

describe('viewers that are far too slow', () => {
  // A short last piece is there at once and is verified, and what comes behind it is soon paid for.
  it.each([100, 576, 1800, 5000])('are not waited for: a last piece of %d bytes', async (last) => {
    const film = new Film(20, 4000, 42 * 16384 + last);
    const { network, viewer, run } = setUp(film, { up: 625_000, down: 2_500_000 });
    const slow = [10, 11, 12, 13].map((n) => {
      network.addNode(id(n), fast);
      return new Hostile(id(n), network, film, signer, 'burst');
    });
    const v = viewer(slow);
    await run(5_000);
    expect(slow.some((h) => h.requests > 0)).toBe(true);
    // By the origin alone all of the 30 s that the player wants are there by then.
    expect(v.results.length).toBeGreaterThanOrEqual(8);
    await run(85_000);
    expect(v.results.length).toBe(20);
    expect(figures([v], film)).toMatchObject(fine);
  });
});
