/**
 * Dates what a link brought to a busy page. A beat that is heard after a message was sent after it, in most browsers; in some a
 * message overtakes beats. So none is dated before the least transit that was ever seen when a message was found. All in µs.
 */
export class Arrivals {
  /** Of messages as they were found: how much later than it was sent by the sender's clock. Counted from the first one's. */
  #zero: number | undefined;
  #least = 0;

  /** A message was found. sentAt is of the sender's clock, 32 bits, wrapping. */
  found(at: number, sentAt: number): void {
    this.#zero ??= at - sentAt;
    this.#least = Math.min(this.#least, this.#transit(at, sentAt));
  }

  /** When a message had come that was found at `at`, given that a beat of `then` says it was there by then. */
  dated(at: number, sentAt: number, then: number): number {
    const earliest = at - (this.#transit(at, sentAt) - this.#least);
    return Math.min(at, Math.max(then, earliest));
  }

  #transit(at: number, sentAt: number): number {
    return (at - sentAt - this.#zero!) | 0;
  }
}
