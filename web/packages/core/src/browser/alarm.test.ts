import { afterEach, describe, expect, it, vi } from 'vitest';
import { beatsMs, calmMs } from '../background/beats.ts';
import { FakeClock } from '../testing/clock.ts';
import { type AlarmParts, createAlarm } from './alarm.ts';

/** A page whose own timers are as late as those of a hidden one, with a worker that runs when it is let. */
const page = (forbidden?: 'throws' | 'fails', seen = { hidden: true }) => {
  const clock = new FakeClock();
  vi.stubGlobal('document', seen);
  let text = '';
  let ended = false;
  let timer = 0;
  const worker = {
    onmessage: undefined as ((e: unknown) => void) | undefined,
    onerror: undefined as ((e: unknown) => void) | undefined,
    postMessage(ms: number) {
      clock.clearTimer(timer);
      timer = clock.setTimer(() => {
        if (forbidden) worker.onerror?.({ preventDefault() {} });
        else if (!ended) worker.onmessage?.({ data: 0 });
      }, ms);
    },
    terminate: () => {
      ended = true;
      clock.clearTimer(timer);
    },
  };
  const timers = {
    now: () => clock.now(),
    setTimer: (f: () => void, ms: number) => clock.setTimer(f, seen.hidden ? Math.max(1_000, ms) : ms),
    clearTimer: vi.fn((id: number) => clock.clearTimer(id)),
  };
  const parts: AlarmParts = {
    channel: () => channel as unknown as MessageChannel,
    worker(program) {
      if (forbidden === 'throws') throw new Error('forbidden');
      text = program;
      return worker as unknown as Worker;
    },
  };
  const rung: number[] = [];
  const port1 = { onmessage: () => {}, close: vi.fn() };
  const channel = { port1, port2: { postMessage: () => clock.setTimer(() => port1.onmessage(), 0) } };
  const begun = clock.now();
  const beats: (number | undefined)[] = [];
  const alarm = createAlarm(timers, parts)(
    () => rung.push(clock.now() - begun),
    (ms) => beats.push(ms),
  );
  return { clock, alarm, rung, beats, worker, timers, text: () => text };
};

afterEach(() => vi.unstubAllGlobals());

describe('the alarm', () => {
  it('rings when it was set for, in a hidden page', async () => {
    const p = page();
    await p.clock.advance(0);
    p.alarm.set(7.2);
    p.alarm.set(30);
    await p.clock.advance(100);
    expect(p.rung).toEqual([8]);
    p.alarm.set(50);
    p.alarm.set(5);
    await p.clock.advance(100);
    expect(p.rung).toEqual([8, 105]);
  });

  it('leaves the worker alone while the page is seen', async () => {
    const seen = { hidden: false };
    const p = page(undefined, seen);
    await p.clock.advance(0);
    const asked = vi.spyOn(p.worker, 'postMessage');
    p.alarm.set(7.2);
    await p.clock.advance(100);
    expect([p.rung, asked.mock.calls]).toEqual([[8], []]);
    // What the page's timer was to do is the worker's from the next time on.
    p.alarm.set(500);
    seen.hidden = true;
    p.alarm.set(20);
    await p.clock.advance(2_000);
    expect([p.rung, asked.mock.calls]).toEqual([[8, 120], [[20]]]);
    p.alarm.set(30);
    seen.hidden = false;
    p.alarm.set(10);
    await p.clock.advance(2_000);
    expect(p.rung).toEqual([8, 120, 2_110]);
  });

  it('takes back no timer of the page that has rung', async () => {
    const p = page(undefined, { hidden: false });
    p.alarm.set(10);
    await p.clock.advance(20);
    p.alarm.set(10);
    await p.clock.advance(20);
    expect([p.rung, p.timers.clearTimer.mock.calls.length]).toEqual([[10, 30], 1]); // the worker began to run
    p.alarm.set(10);
    p.alarm.set(5);
    await p.clock.advance(20);
    expect([p.rung, p.timers.clearTimer.mock.calls.length]).toEqual([[10, 30, 45], 2]);
  });

  it('keeps what was set before the worker ran', async () => {
    const p = page();
    p.alarm.set(20);
    await p.clock.advance(2_000);
    expect(p.rung).toEqual([20]);
  });

  it.each(['throws', 'fails'] as const)('falls back to the timers of the page where a worker %s', async (how) => {
    const p = page(how);
    p.alarm.set(20);
    await p.clock.advance(5_000);
    expect(p.rung).toEqual([1_000]);
    p.alarm.set(1_500);
    await p.clock.advance(5_000);
    expect(p.rung).toEqual([1_000, 6_500]);
  });

  it('goes on when the worker dies', async () => {
    const p = page();
    await p.clock.advance(0);
    p.alarm.set(100);
    p.worker.onerror?.({ preventDefault() {} });
    await p.clock.advance(3_000);
    expect(p.rung).toEqual([1_000]);
  });

  it('is silent once stopped', async () => {
    const p = page();
    await p.clock.advance(0);
    p.alarm.set(10);
    p.alarm.stop();
    await p.clock.advance(2_000);
    expect(p.rung).toEqual([]);
    expect(p.clock.pending).toBe(0);
  });

  it('has a worker that is a timer', async () => {
    const said: number[] = [];
    const waited: unknown[] = [];
    const scope = {
      clearTimeout() {},
      setTimeout: (f: (v: number) => void, ms: number, v: number) => waited.push([ms, f(v)]),
      postMessage: (v: number) => said.push(v),
    };
    const program = new Function(...Object.keys(scope), `let onmessage;${page().text()};return onmessage`);
    program(...Object.values(scope))({ data: 12 });
    expect(said).toEqual([0]);
    expect(waited).toEqual([[12, 1]]);
  });

  it('has one that beats for half a second, and longer when it is asked again', () => {
    let beat: (() => void) | undefined;
    let ms = 0;
    let every = 0;
    const said: number[] = [];
    const scope = {
      performance: { now: () => 1_000 + ms },
      postMessage: (v: number) => said.push(v),
      setInterval(f: () => void, ms: number) {
        expect(beat).toBe(undefined);
        beat = f;
        every = ms;
        return 1;
      },
      clearInterval() {
        beat = undefined;
      },
    };
    const program = new Function(...Object.keys(scope), `let onmessage;${page().text()};return onmessage`);
    const onmessage = program(...Object.values(scope));
    onmessage({ data: -10 });
    for (; beat && ms < 2_000; ms += 10) {
      if (ms === 250) onmessage({ data: -10 });
      beat();
    }
    expect([ms, every]).toEqual([250 + beatsMs, 10]);
    expect([said[0], said.at(-1)]).toEqual([1_000, 1_740]);
    onmessage({ data: -calmMs });
    said.length = 0;
    while (beat && said.length < 100) beat();
    expect([every, said.length]).toEqual([calmMs, Math.ceil(beatsMs / calmMs)]);
  });

  it('hears beats apart from the timer', async () => {
    const p = page();
    await p.clock.advance(0);
    p.alarm.set(10);
    p.worker.onmessage?.({ data: 123.5 });
    expect([p.beats, p.rung]).toEqual([[123.5], []]);
    await p.clock.advance(100);
    expect(p.rung).toEqual([10]);
    const asked: number[] = [];
    p.worker.postMessage = (ms) => asked.push(ms);
    p.alarm.beat?.(40);
    expect(asked).toEqual([-40]);
    p.alarm.queue?.();
    expect(p.beats).toHaveLength(1);
    await p.clock.advance(0);
    expect(p.beats).toEqual([123.5, undefined]);
  });
});
