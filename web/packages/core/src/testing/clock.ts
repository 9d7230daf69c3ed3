/** A clock that moves when a test says so. */

import type { Clock } from '../ports.ts';

export class FakeClock implements Clock {
  private time = 1_000;
  private next = 1;
  private readonly timers = new Map<number, { at: number; f: () => void }>();

  now(): number {
    return this.time;
  }

  setTimer(f: () => void, ms: number): number {
    const id = this.next++;
    this.timers.set(id, { at: this.time + Math.max(0, ms), f });
    return id;
  }

  clearTimer(id: number): void {
    this.timers.delete(id);
  }

  /** Timers that are still set: none may be left after a stop. */
  get pending(): number {
    return this.timers.size;
  }

  /** Nothing runs for so long: what came due meanwhile is late. */
  sleep(ms: number): void {
    this.time += ms;
  }

  /** Moves on, running what comes due in order, with the promises in between. */
  async advance(ms: number): Promise<void> {
    const end = this.time + ms;
    await settle();
    for (;;) {
      let first: number | undefined;
      for (const [id, { at }] of this.timers) {
        if (at <= end && (first === undefined || at < this.timers.get(first)!.at)) first = id;
      }
      if (first === undefined) break;
      const timer = this.timers.get(first)!;
      this.timers.delete(first);
      this.time = Math.max(this.time, timer.at);
      timer.f();
      await settle();
    }
    this.time = end;
    await settle();
  }
}

/** Lets promises that are due run. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 30; i++) await Promise.resolve();
}
