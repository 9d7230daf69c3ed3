import { expect, it } from 'vitest';
import { pieceSize } from '../protocol/peer.ts';
import { Line, Store, Thread, Time, Wire } from '../testing/line.ts';
import { createBackground } from './background.ts';

/** Pieces that one page has asked another for, which a message does not go beyond the end of. */
class Pieces extends Store {
  override next(n: number) {
    return super.next(Math.min(n, this.left % pieceSize || pieceSize));
  }
}

/** What two pages do for each second in which one asks the other for pieces, over a line of so many Mbit/s and 40 ms. */
const cost = (mbit: number) => {
  const time = new Time();
  const wire = new Wire(new Line(time, mbit * 125_000), 40);
  const count = { requests: 0, alarms: 0, beats: 0 };
  const page = () => {
    const thread = new Thread(time);
    return createBackground({
      clock: time,
      alarm: (f, heard) =>
        thread.alarm(true)(
          () => {
            count.alarms++;
            f();
          },
          (ms) => {
            if (ms) count.beats++;
            heard(ms);
          },
        ),
      soon: time.soon,
    });
  };
  const store = new Pieces(0);
  const viewer = page();
  const near = page().add(wire, store);
  const far = viewer.add(wire, new Store(0));
  let came = 0;
  const ask = () => {
    let pieces = 0;
    let may = viewer.mayRequest();
    for (; may === true; may = viewer.mayRequest()) {
      far.requested(pieceSize);
      pieces++;
    }
    if (Number.isFinite(may)) time.setTimer(ask, may);
    if (!pieces) return;
    count.requests++;
    time.setTimer(() => {
      store.left += pieces * pieceSize;
      near.wake();
    }, 20);
  };
  wire.arrived = (m) => {
    came += far.data(m)?.payload.length ?? 0;
    if (came % pieceSize === 0) ask();
  };
  wire.acked = (m) => void near.ack(m);
  ask();
  time.pass(20_000);
  const seen = () => ({ ...count, messages: wire.sizes.length, acks: wire.acks });
  const before = seen();
  const bytes = wire.bytes;
  time.pass(20_000);
  const each = Object.entries(seen()).map(([name, n]) => [name, Math.round((n - before[name as 'acks']) / 20)]);
  return { ...Object.fromEntries(each), share: (wire.bytes - bytes) / 20 / (mbit * 125_000) } as Record<string, number>;
};

// A message is a task of both pages, and so is an ack, which is a packet of its own besides. What a link costs two pages is how often
// they are woken (docs/experiments/page-cost.md).
it.each([
  { mbit: 5, messages: 185, acks: 100, requests: 12, alarms: 160, beats: 25 }, // before: 296, 151, 35, 224
  { mbit: 20, messages: 300, acks: 150, requests: 12, alarms: 230, beats: 25 }, // before: 291, 144, 132, 210
])('a second of the background at $mbit Mbit/s wakes pages seldom', ({ mbit, ...most }) => {
  const seen = cost(mbit);
  expect(seen.share).toBeGreaterThan(0.9);
  for (const [name, n] of Object.entries(most)) expect(seen[name], name).toBeLessThanOrEqual(n);
});
