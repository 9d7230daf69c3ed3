import { expect, test } from 'vitest';
import { Acker } from './acker.ts';

test.each([
  { foreground: false, every: 2 },
  { foreground: true, every: 8 },
])('acks go out with every $every messages (foreground: $foreground), and no later than 25 ms', ({
  foreground,
  every,
}) => {
  const start = 1_000_000;
  const acker = new Acker();
  acker.foreground = foreground;
  for (let sequence = 0; sequence < every; sequence++) {
    const now = start + sequence * 3_000;
    acker.onData(now, 1200, { sequence, ackNow: false });
    expect(acker.due).toBe(sequence === every - 1 ? now : start + 25_000);
  }
});
