/** One stream of messages as the client sees it (spec/probe.md, Streams). */
import type { Arrival } from '../netstat/arrival.ts';
import type { Exchange } from '../netstat/delay.ts';
import type { Run } from '../wire/control.ts';
import type { Echo, Probe } from '../wire/probe.ts';
import { tail } from '../wire/quality.ts';

/** Further duplicates beyond so many arrivals more than messages are left out. */
const spare = 64;

/** The time of a stream's messages, ms. */
export const lengthOf = (run: Run): number => ((run.messages + tail) * run.interval_us) / 1000;

/** Something that happens once, or never. */
export interface Event {
  readonly happened: boolean;
  happen(): void;
  /** False after so many ms without it. */
  within(ms: number): Promise<boolean>;
}

export function event(): Event {
  let happened = false;
  const waiting = new Set<() => void>();
  return {
    get happened() {
      return happened;
    },
    happen() {
      happened = true;
      for (const wake of waiting) wake();
      waiting.clear();
    },
    within(ms) {
      if (happened) return Promise.resolve(true);
      return new Promise((resolve) => {
        const wake = () => {
          clearTimeout(timer);
          resolve(true);
        };
        const timer = setTimeout(() => {
          waiting.delete(wake);
          resolve(false);
        }, ms);
        waiting.add(wake);
      });
    },
  };
}

/** What the client has asked the server for, by a number. */
export class Asked {
  readonly ready = event();
  readonly ended = event();
  /** Every number has come, those at the end included. */
  readonly whole = event();
  /** Why the server refused it. */
  refused: string | undefined;

  /** A part of the server's record, of what has one. */
  record(_arrivals: readonly Arrival[]): void {}
}

export class Stream extends Asked {
  readonly run: Run;
  /** Down, and echoes: what came here. */
  readonly arrivals: Arrival[] = [];
  readonly exchanges: Exchange[] = [];
  /** Up, and the probes of echoes: the server's record. */
  readonly told: Arrival[] = [];
  /** Messages that figures count: all, or fewer where the line took them too slowly. */
  counted: number;
  private readonly seen: Uint8Array;
  private missing: number;
  private closed = false;

  constructor(run: Run) {
    super();
    this.run = run;
    this.counted = run.messages;
    this.missing = run.messages + tail;
    this.seen = new Uint8Array(this.missing);
  }

  /** A probe of the server, or an echo, and when it came. */
  arrived(message: Probe | Echo, at: number): void {
    const { sequence, sent } = message;
    if (this.closed || sequence >= this.seen.length || this.arrivals.length >= this.run.messages + spare) return;
    if (sequence < this.run.messages) {
      this.arrivals.push([sequence, sent, at]);
      if (message.type === 'echo' && !this.seen[sequence]) {
        this.exchanges.push([sent, message.received, message.echoed, at]);
      }
    }
    if (this.seen[sequence]) return;
    this.seen[sequence] = 1;
    this.missing--;
    if (this.missing === 0) this.whole.happen();
  }

  /** So many messages were sent, those at the end included. The last ones of a stream that was cut short show gaps before them. */
  sent(messages: number): void {
    this.counted = Math.max(0, Math.min(this.run.messages, messages - tail));
  }

  override record(arrivals: readonly Arrival[]): void {
    const room = this.run.messages + spare - this.told.length;
    this.told.push(...arrivals.slice(0, Math.max(0, room)));
  }

  /** What comes from now on is lost. */
  close(): void {
    this.closed = true;
  }
}
