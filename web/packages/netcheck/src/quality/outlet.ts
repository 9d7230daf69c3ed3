/** Sends the messages of a line's streams in their time (spec/probe.md, A check in a browser). */
import { encodeMessage } from '../wire/probe.ts';
import { tail, thinTime } from '../wire/quality.ts';
import { type Event, lengthOf, type Stream } from './stream.ts';

/** Messages that wait in the browser, above which nothing is sent: a message that waits there is older than it says. */
const mostWaiting = 4;

/** A full browser says when it has room. Should it not, or a stream's time be over, this is when that is looked at: ms. */
const guard = 100;

interface Sending {
  stream: Stream;
  began: number; // µs
  sequence: number; // of the next message
  done(sent: number): void;
}

export class Outlet {
  private readonly sending = new Set<Sending>();
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** now: µs of this page's clock. over: of the line. */
  constructor(
    private readonly channel: RTCDataChannel,
    private readonly over: Event,
    private readonly now: () => number,
  ) {
    channel.onbufferedamountlow = () => this.pump();
  }

  /**
   * Sends until all is sent, the server has closed its record, or the line takes it too slowly. Gives how many messages were
   * sent.
   */
  send(stream: Stream): Promise<number> {
    this.channel.bufferedAmountLowThreshold = (mostWaiting / 2) * stream.run.size;
    return new Promise((done) => {
      this.sending.add({ stream, began: this.now(), sequence: 0, done });
      this.pump();
    });
  }

  /** Sends what is due and what the browser has room for. Nothing waits for a line that is over. */
  pump(): void {
    clearTimeout(this.timer);
    for (const s of [...this.sending]) if (this.ends(s)) this.finish(s);
    let full = false;
    for (let next = this.next(); next; next = this.next()) {
      const { run } = next.stream;
      // One that is closing throws at what it is given; the event that ends the line follows.
      full = this.channel.readyState !== 'open' || this.channel.bufferedAmount >= mostWaiting * run.size;
      if (full) break;
      const probe = { type: 'probe', stream: run.stream, sequence: next.sequence++, sent: this.now() } as const;
      this.channel.send(encodeMessage(probe, run.size));
      if (this.ends(next)) this.finish(next);
    }
    if (this.sending.size === 0) return;
    const soonest = Math.min(...[...this.sending].map((s) => s.began + s.sequence * s.stream.run.interval_us));
    this.timer = setTimeout(() => this.pump(), full ? guard : Math.max(1, (soonest - this.now()) / 1000));
  }

  /** Of the streams that have a message due the one that has sent the fewest: none waits for all of another. */
  private next(): Sending | undefined {
    const now = this.now();
    const due = [...this.sending].filter((s) => now >= s.began + s.sequence * s.stream.run.interval_us);
    return due.sort((a, b) => a.sequence - b.sequence)[0];
  }

  private ends({ stream: { run, ended }, began, sequence }: Sending): boolean {
    const all = sequence === run.messages + tail;
    return all || this.over.happened || ended.happened || this.now() - began >= (lengthOf(run) + thinTime) * 1000;
  }

  private finish(s: Sending): void {
    this.sending.delete(s);
    s.done(s.sequence);
  }
}
