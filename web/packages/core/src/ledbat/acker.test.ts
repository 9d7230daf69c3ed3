import { expect, test } from 'vitest';
import { Acker } from './acker.ts';

test.each([
  { foreground: false, bytes: 1200, every: 2 },
  { foreground: true, bytes: 1200, every: 8 },
  { foreground: true, bytes: 150, every: 2 },
])('acks go out with every $every messages of $bytes bytes (foreground: $foreground), and no later than 25 ms', (c) => {
  const acker = new Acker();
  acker.foreground = c.foreground;
  let now = 1_000_000;
  let sequence = 0;
  const next = () => {
    now += 3_000;
    acker.onData(now, c.bytes, { sequence: sequence++, ackNow: false });
  };
  while (sequence < 200) {
    next();
    if (acker.due && acker.due <= now) acker.make(now);
  }
  acker.make(now);
  const alone = now + 28_000;
  for (let n = 1; n <= c.every; n++) {
    next();
    expect(acker.due).toBe(n === c.every ? now : alone);
  }
});

test('with a coarse clock each message is acknowledged at once, as held for no time', () => {
  const acker = new Acker();
  acker.coarse = true;
  for (let sequence = 0; sequence < 100; sequence++) {
    const now = 100_000 * Math.floor(10 + sequence / 40); // forty messages in each step of the clock
    acker.onData(now, 1200, { sequence, ackNow: false });
    expect(acker.due).toBe(now);
    expect(acker.make(now)).toMatchObject({ highest: sequence, hold: 0 });
  }
});
