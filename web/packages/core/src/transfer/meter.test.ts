import { describe, expect, it } from 'vitest';
import { FakeClock } from '../testing/clock.ts';
import { createMeter } from './meter.ts';

describe('the rate of a peer', () => {
  // A sender with 125 kB/s has four links, and gives each of them its whole line for an eighth of a second.
  it('is its part, where several are served in turn', async () => {
    const clock = new FakeClock();
    const meter = createMeter(clock);
    const each = 16.384;
    meter.arrived(2048, 60_000, false);
    expect(meter.rate).toBe(0);
    for (let turn = 0; turn < 12; turn++) {
      for (let n = 0; n < 8; n++) {
        await clock.advance(each);
        meter.arrived(2048, 0, false);
      }
      if (turn === 0) expect(meter.rate).toBeCloseTo(125_000, -1);
      if (turn >= 4) {
        expect(meter.rate).toBeGreaterThan(25_000);
        expect(meter.rate).toBeLessThan(40_000);
      }
      await clock.advance(3 * 8 * each);
    }
    // Alone, it has the line soon.
    for (let n = 0; n < 240; n++) {
      await clock.advance(each);
      meter.arrived(2048, 0, false);
    }
    expect(meter.rate).toBeGreaterThan(100_000);
  });

  it('does not count the time until an answer is due', async () => {
    const clock = new FakeClock();
    const meter = createMeter(clock);
    for (let n = 0; n < 40; n++) {
      await clock.advance(200);
      meter.arrived(8192, 200_000, false);
      await clock.advance(60);
      meter.arrived(8192, 0, true);
      await clock.advance(1000);
    }
    expect(meter.rate).toBeGreaterThan(130_000);
  });

  it('is measured anew where it was low and nothing came for ten seconds', async () => {
    const clock = new FakeClock();
    const meter = createMeter(clock);
    const serve = async (bytes: number) => {
      meter.arrived(bytes, 20_000, false);
      for (let n = 0; n < 20; n++) {
        await clock.advance(60);
        meter.arrived(bytes, 0, false);
      }
      meter.idle();
    };
    await serve(1200); // 20 kB/s
    expect(meter.rate).toBeCloseTo(20_000, -3);
    await clock.advance(9_999);
    expect(meter.rate).toBeGreaterThan(0);
    await clock.advance(1);
    expect(meter.rate).toBe(0);
    await serve(6000);
    expect(meter.rate).toBeCloseTo(100_000, -4);
    await clock.advance(60_000);
    expect(meter.rate).toBeGreaterThan(90_000);
  });

  // A short last piece comes first, and the message behind it says nothing of what comes then.
  it('is not that of what comes behind a short message', async () => {
    const clock = new FakeClock();
    const meter = createMeter(clock);
    meter.arrived(576, 60_000, false);
    // Each is paid for before the next: a kilobyte a second.
    for (const ms of [576, 8192, 8192]) {
      await clock.advance(ms);
      meter.arrived(8192, 0, false);
      expect(meter.rate).toBeGreaterThan(0);
      expect(meter.rate).toBeLessThan(2_500);
    }
  });

  it('nor where the short message is the second', async () => {
    const clock = new FakeClock();
    const meter = createMeter(clock);
    meter.arrived(8192, 60_000, false);
    for (const [ms, bytes] of [
      [174, 100],
      [118, 8192],
      [8192, 8192],
    ] as const) {
      await clock.advance(ms);
      meter.arrived(bytes, 0, false);
      expect(meter.rate).toBeGreaterThan(0);
      expect(meter.rate).toBeLessThan(2_500);
    }
  });
});
