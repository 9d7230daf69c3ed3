import { div, leastPackets, leastTarget, packet, recallTime, smoothTarget } from './constants.ts';
import type { Signal } from './controller.ts';

/** How much of the target a sending host bears. */
export class Tolerance {
  /** Largest windows of the current time and of the one before, and when the current one began. */
  #peak = 0;
  #before = 0;
  #since = 0;

  /** The target for a signal to a controller with that window. */
  of(s: Signal, window: number): number {
    if (s.now - this.#since >= recallTime) {
      this.#before = this.#peak;
      this.#peak = 0;
      this.#since = s.now;
    }
    this.#peak = Math.max(this.#peak, window);
    const most = Math.max(this.#peak, this.#before);
    const target = Math.min(s.target, Math.max(div(s.base, 3), smoothTarget));
    const pushed = div(div(target * window, most) * (s.base + target), Math.max(1, s.base));
    const least = Math.max(leastTarget, div(leastPackets * packet * s.rtt, most));
    return Math.min(target, Math.max(div(pushed * 6, 5), least));
  }
}
