import { describe, expect, it } from 'vitest';
import { describeChart, describeSaved } from './chart';
import { describeOutage, type OutageView } from './outage';

const away: OutageView = { service: 'tracker', leftMs: 13_200, connected: false, viewers: 2, stalls: 0 };

describe('what the page says of an outage', () => {
  it.each<[Partial<OutageView>, string]>([
    [{}, 'The tracker is gone, back in 14 s. Watch: nothing stops.'],
    [{ service: 'seed', viewers: 0 }, 'The seed is gone, back in 14 s. The film plays on.'],
    [{ leftMs: 0, stalls: 1 }, 'The tracker is gone, and coming back. The film stalled once.'],
    [{ leftMs: undefined }, 'The tracker is back; this page will find it. Nothing stopped.'],
    [{ leftMs: undefined, connected: true }, 'The tracker is back. Nothing stopped.'],
    [{ leftMs: undefined, service: 'seed', stalls: 2 }, 'The seed is back. The film stalled 2 times.'],
  ])('%j', (change, text) => {
    expect(describeOutage({ ...away, ...change }).text).toBe(text);
  });

  it('is read out once, not with every second', () => {
    expect(describeOutage(away).key).toBe(describeOutage({ ...away, leftMs: 4000 }).key);
  });
});

describe('the chart in words', () => {
  it('names each source and the whole', () => {
    const rates = { origin: 12_500, seed: 125_000, peer: 1_250_000 };
    expect(describeChart(rates, 4, 90)).toBe(
      'The last 90 s of all 4 viewers on this machine. Now 0.1 Mbit/s come from the origin, 1.0 Mbit/s from the seed and 10 Mbit/s from other viewers; without Leeway the origin would send 11 Mbit/s.',
    );
    expect(describeSaved({ origin: 1_000_000, seed: 0, peer: 9_000_000 })).toBe(
      'Sent to viewers by the origin so far: 1.0 MB; without Leeway: 10 MB.',
    );
    expect(describeSaved({ origin: 0, seed: 0, peer: 0 })).toBe('');
  });
});
