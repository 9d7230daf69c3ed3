import { div, initialWindow, packet, slowdownWindow } from './constants.ts';
import { Controller, type Signal } from './controller.ts';

/** The part of the base that is borne: one in so many. */
const part = 5;
/** And of that: a longer queue, while the host's own has drained, is others'. */
const othersPart = 4;
/** µs for which it has to be gone at most. */
const othersMost = 2_000_000;

/**
 * A host's controller that bears no more than a part of the base, within bounds (µs), whatever the target; and next to
 * nothing beside a queue that others have made (spec/probe.md, Load that gives way).
 */
export class Within extends Controller {
  #least: number;
  #most: number;
  #acked = 0;
  /** The base as the load began, µs. */
  #first = 0;
  /** Bytes/s: the largest window by its round trip. */
  #fastest = 0;
  /** Others' queue was seen, since then, and when it was seen last. */
  #holds = false;
  #since = 0;
  #seenAt = 0;

  constructor(least: number, most: number) {
    super(true);
    this.#least = least;
    this.#most = most;
  }

  override onAck(heard: Signal): void {
    const bears = Math.min(this.#most, Math.max(this.#least, div(heard.base, part)));
    this.#fastest = Math.max(this.#fastest, div(this.window * 1_000_000, Math.max(1, heard.rtt)));
    // A packet takes its time on the line, which is not a queue.
    const others = Math.max(div(bears, othersPart), div(packet * 1_000_000, Math.max(1, this.#fastest)));
    const s = { ...heard, target: Math.min(heard.target, bears) };
    if (this.#begins(s, others)) this.#hold(s.now, s.now - othersMost);
    if (this.#holds) {
      this.#bear(s, others);
      return;
    }
    const slowed = this.state === 'slowdown';
    super.onAck(s);
    if (slowed && this.state === 'ramp' && s.queuing >= others) this.#hold(s.now, s.now);
  }

  /** Whether the base has fallen since the load began: what it began beside was a queue. */
  #begins({ base, acked }: Signal, others: number): boolean {
    const fell = this.#acked >= initialWindow && base + others <= this.#first;
    if (this.#acked < initialWindow || fell) this.#first = base;
    this.#acked += acked;
    return fell;
  }

  /** Begins to hold the window down, for a queue that was seen since then. */
  #hold(now: number, since: number): void {
    this.#holds = true;
    this.#since = since;
    this.#seenAt = now;
    this.state = 'avoidance';
    this.window = Math.min(this.window, slowdownWindow);
  }

  /** Keeps the window so small that what is seen of a queue stays others', until that has been gone for as long as it was seen. */
  #bear(s: Signal, others: number): void {
    if (s.queuing >= others) this.#seenAt = s.now;
    else if (s.now - this.#seenAt > Math.min(this.#seenAt - this.#since, othersMost)) {
      this.#holds = false;
      this.state = 'ramp';
      this.beganAt = s.now;
    }
    super.onAck({ ...s, target: Math.min(s.target, others) });
    if (this.#holds) this.window = Math.min(this.window, slowdownWindow);
  }
}
