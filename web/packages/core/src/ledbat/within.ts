import { div } from './constants.ts';
import { Controller, type Signal } from './controller.ts';

/** The part of the base that is borne: one in so many. */
const part = 5;

/** A host's controller that bears no more than a part of the base, within bounds (µs), whatever the target. */
export class Within extends Controller {
  #least: number;
  #most: number;

  constructor(least: number, most: number) {
    super(true);
    this.#least = least;
    this.#most = most;
  }

  override onAck(heard: Signal): void {
    const target = Math.min(heard.target, this.#most, Math.max(this.#least, div(heard.base, part)));
    super.onAck({ ...heard, target });
  }
}
