import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readMeasurement } from './measurement.ts';
import { lately, type Series, together } from './received.ts';

const series = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 1000 }), fc.nat(1e6)), { minLength: 1, maxLength: 30 })
  .map((steps) => {
    const all: [number, number][] = [[0, 0]];
    for (const [t, b] of steps) all.push([all.at(-1)![0] + t, all.at(-1)![1] + b]);
    return all as Series;
  });

/** The definition, without regard to time. */
function had(of: Series, at: number): number {
  const after = of.findIndex(([t]) => t >= at);
  if (after < 0) return of.at(-1)![1];
  const [t1, b1] = of[after]!;
  const [t0, b0] = of[Math.max(0, after - 1)]!;
  return t1 === t0 ? b1 : b0 + ((b1 - b0) * (at - t0)) / (t1 - t0);
}

test('connections that are measured at different times are added up at each of these times', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ series, ended: fc.boolean() }), { minLength: 1, maxLength: 5 }),
      fc.nat(5000),
      (all, also) => {
        const sum = together(all, also);
        const live = all.filter(({ ended }) => !ended);
        const end = live.length
          ? Math.min(...live.map((c) => c.series.at(-1)![0]))
          : Math.max(...all.map((c) => c.series.at(-1)![0]));
        const times = new Set([also, ...all.flatMap((c) => c.series.map(([at]) => at))].filter((at) => at <= end));
        expect(sum.map(([at]) => at)).toEqual([...times].sort((a, b) => a - b));
        for (const [at, bytes] of sum) {
          expect(bytes).toBeCloseTo(
            all.reduce((s, c) => s + had(c.series, at), 0),
            3,
          );
        }
      },
    ),
  );
  expect(together([], 1)).toEqual([]);
});

test('two connections of 8 and 16 Mbit/s make 24, whenever each is measured', () => {
  const even = (rate: number, times: number[]): Series => times.map((at) => [at, (at * rate) / 8] as const);
  const sum = together(
    [
      { series: even(8, [0, 70, 300, 410]), ended: false },
      { series: even(16, [0, 110, 290, 500]), ended: false },
    ],
    200,
  );
  expect(sum.find(([at]) => at === 200)).toEqual([200, (200 * 24) / 8]);
  expect(sum.at(-1)).toEqual([410, (410 * 24) / 8]);
  expect(lately([even(8, [0, 70, 300, 410]), even(16, [0, 110, 290, 500])], 200)).toBeCloseTo(24e6);
});

test('a measurement is read, or it is none', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.json(),
        fc.jsonValue().map((v) => JSON.stringify({ AppInfo: v, TCPInfo: v })),
      ),
      (text) => {
        const m = readMeasurement(text);
        if (!m) return;
        for (const n of [m.elapsed, m.bytes, ...Object.values(m.info ?? {})]) expect(n >= 0 && n < 2 ** 53).toBe(true);
      },
    ),
  );
  expect(
    readMeasurement(
      '{"AppInfo":{"ElapsedTime":5,"NumBytes":7},"ConnectionInfo":{"Client":"[2001:db8::1]:4"},"TCPInfo":{"ElapsedTime":4,"RTT":9,"MinRTT":-1,"Other":3,"RcvRTT":"x"}}',
    ),
  ).toEqual({ elapsed: 5, bytes: 7, v6: true, info: { ElapsedTime: 4, RTT: 9 } });
});
