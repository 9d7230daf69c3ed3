import { div, leastTarget, never, roomTime, slowdownWindow } from './constants.ts';
import { Controller, type Signal } from './controller.ts';

/** The part of the base that is borne: one in so many. */
const part = 5;
/** And of a short queue. */
const shortPart = 2;
/** Round trips for which losses are of one overflow, or of the end of slow start: they are told while the queue falls. */
const ownTrips = 4;

/**
 * A host's controller that bears no more than a part of the base, within bounds (µs), whatever the target, and half of a queue that
 * other traffic overflows before it reaches that.
 */
export class Within extends Controller {
  #least: number;
  #most: number;
  /** The queue, µs, that overflowed below what is borne; 0: none yet. */
  #short = 0;
  /** When that was. */
  #shortAt = 0;
  /** When the queue was last one of its own making, or something was lost. */
  #ownAt = -never;

  constructor(least: number, most: number) {
    super(true);
    this.#least = least;
    this.#most = most;
  }

  override onAck(heard: Signal): void {
    let target = this.#bears(heard);
    if (this.#short > 0 && heard.now - this.#shortAt < roomTime) {
      target = Math.min(target, Math.max(div(this.#short, shortPart), leastTarget));
    }
    if (this.state === 'slow-start') this.#ownAt = heard.now;
    super.onAck({ ...heard, target });
  }

  /**
   * On a line of its own the host is turned back by the delay before the queue is full, and where it is full all the same, more
   * than what is borne was seen. A loss beside less of a queue says that others fill it, whose least queue is part of the base:
   * what is borne would never be seen.
   */
  override onLoss(heard: Signal): void {
    const bears = this.#bears(heard);
    const apart = heard.now - this.#ownAt >= ownTrips * heard.rtt;
    this.#ownAt = heard.now;
    super.onLoss(heard);
    if (!apart || 4 * heard.queuing < bears || heard.queuing >= bears) return;
    this.#short = heard.queuing;
    this.#shortAt = heard.now;
    this.window = Math.min(this.window, slowdownWindow); // it was larger than others can bear
  }

  /** What a fifth of the base allows. */
  #bears({ target, base }: Signal): number {
    return Math.min(target, this.#most, Math.max(this.#least, div(base, part)));
  }
}
