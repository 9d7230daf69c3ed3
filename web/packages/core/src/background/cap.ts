/** How much of the past a cap makes up for, µs: what alarms are late by. */
const catchUp = 100_000;

/** The rate that a site allows what a host sends: spec/background-transport.md, "Upload cap". */
export class UploadCap {
  /** kbit/s; 0: no cap. */
  kbps = 0;
  #next = 0;

  /** A message of so many bytes went out. */
  sent(now: number, bytes: number): void {
    if (this.kbps) this.#next = Math.max(this.#next, now - catchUp) + Math.floor((bytes * 8000) / this.kbps);
  }

  /** When the next message may go out, µs; in the past: now. */
  at(): number {
    return this.kbps && this.#next;
  }
}
