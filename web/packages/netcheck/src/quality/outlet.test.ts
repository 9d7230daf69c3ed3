import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Outlet } from './outlet.ts';
import { event, lengthOf, Stream } from './stream.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A channel that counts how often it is asked what waits in it. It says that it has room as browsers do: when it falls to the threshold. */
class Channel {
  readyState = 'open';
  bufferedAmountLowThreshold = 0;
  onbufferedamountlow: (() => void) | null = null;
  looks = 0;
  sent = 0;
  private held = 0;

  get bufferedAmount(): number {
    this.looks++;
    return this.held;
  }
  send(data: Uint8Array): void {
    if (this.readyState !== 'open') throw new DOMException('it is not open', 'InvalidStateError');
    this.sent++;
    this.held += data.byteLength;
  }
  /** So many messages have left the browser; `silent`: it does not say so. */
  drain(messages: number, size: number, silent = false): void {
    const before = this.held;
    this.held -= messages * size;
    const low = this.bufferedAmountLowThreshold;
    if (!silent && before > low && this.held <= low) this.onbufferedamountlow?.();
  }
}

const size = 600;
const run = { type: 'run', stream: 1, direction: 'up', messages: 1000, interval_us: 2_000, size } as const;

function sending() {
  const channel = new Channel();
  const over = event();
  const outlet = new Outlet(channel as unknown as RTCDataChannel, over, () => Math.round(performance.now() * 1000));
  const stream = new Stream(run);
  let sent: number | undefined;
  void outlet.send(stream).then((n) => {
    sent = n;
  });
  return { channel, over, outlet, stream, result: () => sent };
}

test('a full browser is not asked again and again: it says when it has room', async () => {
  const { channel } = sending();
  await vi.advanceTimersByTimeAsync(50); // four messages, 2 ms apart
  expect(channel.sent).toBe(4);
  const before = channel.looks;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(channel.sent).toBe(4);
  expect(channel.looks - before).toBeLessThanOrEqual(11); // by the guard alone
  channel.drain(2, size);
  expect(channel.sent).toBe(6); // at once
});

test('a browser that does not say it is looked at all the same', async () => {
  const { channel } = sending();
  await vi.advanceTimersByTimeAsync(50);
  channel.drain(4, size, true);
  await vi.advanceTimersByTimeAsync(100);
  expect(channel.sent).toBeGreaterThanOrEqual(8);
});

test('a channel that is closing is given nothing, and the stream ends with the line', async () => {
  const { channel, over, outlet, result } = sending();
  await vi.advanceTimersByTimeAsync(3);
  channel.readyState = 'closing';
  await vi.advanceTimersByTimeAsync(300);
  over.happen();
  outlet.pump();
  await vi.advanceTimersByTimeAsync(0);
  expect([channel.sent, result()]).toEqual([2, 2]);
  expect(vi.getTimerCount()).toBe(0);
});

test('a stream that is not taken ends in its time, and at once with the line', async () => {
  const stuck = sending();
  await vi.advanceTimersByTimeAsync(lengthOf(run) + 5_000 + 100); // and the time that it may be late
  expect(stuck.result()).toBe(4);
  const cut = sending();
  await vi.advanceTimersByTimeAsync(50);
  cut.over.happen();
  cut.outlet.pump();
  await vi.advanceTimersByTimeAsync(0);
  expect(cut.result()).toBe(4);
  expect(vi.getTimerCount()).toBe(0);
});
