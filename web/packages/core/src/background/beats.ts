/** So long beats go on once they are asked for, and after how long they are asked for again, ms. */
export const beatsMs = 500;
const askAgainUs = 250_000;
/** Between two beats, ms: while they are heard in time, and while they are not. */
export const calmMs = 40;
export const busyMs = 10;
/** A beat is late if it is heard more than this after its time, µs. */
const lateUs = 5_000;

/**
 * Beats of a clock beside the page's thread. They queue for it in one line with the messages of links: what a busy page
 * finds there before a beat has come before that one was sent. All in µs.
 */
export class Beats {
  #ask: (ms: number) => void;
  #queue: () => void;
  #queued = false;
  /** Where that clock begins, by the beat that was heard soonest. */
  #zero = Number.POSITIVE_INFINITY;
  /** When the newest one was sent; 0: none is known of. */
  #sentAt = 0;
  #askedAt = Number.NEGATIVE_INFINITY;
  /** Between two, ms, as they were asked for. */
  #every = busyMs;
  /** When one was late. */
  #lateAt = Number.NEGATIVE_INFINITY;

  /** ask has the clock beat every so many ms; queue has `passed` called behind all that waits for the thread now. */
  constructor(ask: (ms: number) => void, queue: () => void) {
    this.#ask = ask;
    this.#queue = queue;
  }

  /** Something came: for a while it is of interest when. */
  want(now: number): void {
    const since = now - this.#askedAt;
    if (since < askAgainUs) return;
    if (since > beatsMs * 1000) this.#sentAt = 0;
    this.#askedAt = now;
    this.#every = now - this.#lateAt < beatsMs * 1000 ? busyMs : calmMs;
    this.#ask(this.#every);
  }

  /** One was heard; says when it was sent. */
  heard(now: number, beat: number): number {
    this.#zero = Math.min(this.#zero, now - beat);
    this.#sentAt = Math.floor(beat + this.#zero);
    if (now - this.#sentAt > lateUs) this.#lateAt = now;
    return this.#sentAt;
  }

  /** One that is due was not heard: whether what is found now has waited for the thread, what waits behind it tells. */
  overdue(now: number): boolean {
    const over = this.#sentAt > 0 && now - this.#sentAt > this.#every * 1000 + lateUs;
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
