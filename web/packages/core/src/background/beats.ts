/** So long beats go on once they are asked for, and after how long they are asked for again, ms. */
export const beatsMs = 500;
const askAgainUs = 250_000;
/** Between two beats, ms. */
export const beatMs = 10;
/** By when the next one must have been heard, µs. */
const overdueUs = 12_000;

/**
 * Beats of a clock beside the page's thread. They queue for it in one line with the messages of links: what a busy page
 * finds there before a beat has come before that one was sent. All in µs.
 */
export class Beats {
  #ask: () => void;
  #queue: () => void;
  #queued = false;
  /** Where that clock begins, by the beat that was heard soonest. */
  #zero = Number.POSITIVE_INFINITY;
  /** When the newest one was sent; 0: none is known of. */
  #sentAt = 0;
  #askedAt = Number.NEGATIVE_INFINITY;

  /** ask has the clock beat; queue has `passed` called behind all that waits for the thread now. */
  constructor(ask: () => void, queue: () => void) {
    this.#ask = ask;
    this.#queue = queue;
  }

  /** Something came: for a while it is of interest when. */
  want(now: number): void {
    const since = now - this.#askedAt;
    if (since < askAgainUs) return;
    if (since > beatsMs * 1000) this.#sentAt = 0;
    this.#askedAt = now;
    this.#ask();
  }

  /** One was heard; says when it was sent. */
  heard(now: number, beat: number): number {
    this.#zero = Math.min(this.#zero, now - beat);
    this.#sentAt = Math.floor(beat + this.#zero);
    return this.#sentAt;
  }

  /** One that is due was not heard: whether what is found now has waited for the thread, what waits behind it tells. */
  overdue(now: number): boolean {
    const over = this.#sentAt > 0 && now - this.#sentAt > overdueUs;
    if (over && !this.#queued) {
      this.#queued = true;
      this.#queue();
    }
    return over;
  }

  /** What waited has had its turn: a beat that was not among it is late itself. */
  passed(now: number): number {
    this.#queued = false;
    return now;
  }
}
