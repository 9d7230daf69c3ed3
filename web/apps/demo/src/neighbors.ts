import type { Source } from './delivery';
import type { Service } from './outage';

/** What a window of this demo tells the others, once a second. */
export interface Neighbor {
  /** The window: its peer ID changes with its sessions. */
  id: string;
  /** Its session at the tracker: its peer ID; empty before the first. */
  peer: string;
  viewer: number;
  /** Milliseconds since it was opened. */
  ageMs: number;
  /** What comes in: from origin, seeds and viewers by peer ID, bytes per second. */
  flows: { from: string; source: Source; rate: number }[];
  /** All that came in so far. */
  bytes: Record<Source, number>;
  /** A small picture of what it shows, as a data URL, or empty. */
  thumbnail: string;
}

/** Numbers of windows: each is given once, also before the window that has it says so. */
export class Numbers {
  private highest: number;

  constructor(own: number) {
    this.highest = own;
  }

  hear(number: number): void {
    this.highest = Math.max(this.highest, number);
  }

  next(): number {
    this.highest++;
    return this.highest;
  }
}

/** A service that a window stopped for a while. */
export interface ToldOutage {
  outage: Service;
  leftMs: number;
}

/** A window not heard of for this long is gone; hidden windows still speak once a second. */
const forgetMs = 3500;

/**
 * The windows of this demo on this machine, by a broadcast channel: a page sees only its own links, and the picture is
 * better when each window adds its own. Nothing depends on it.
 */
export class Neighbors {
  /** Of this window, for as long as it is open. */
  readonly id = Math.random().toString(36).slice(2);
  onOutage: ((service: Service, leftMs: number) => void) | undefined;
  private readonly channel: BroadcastChannel | undefined;
  private readonly numbers: Numbers;
  private readonly known = new Map<string, { at: number; neighbor: Neighbor }>();

  constructor(film: string, own: number) {
    this.numbers = new Numbers(own);
    if (typeof BroadcastChannel === 'undefined') return;
    this.channel = new BroadcastChannel(`leeway-demo ${film}`);
    this.channel.onmessage = (event: MessageEvent<Neighbor | ToldOutage | { gone: string } | { given: number }>) => {
      const { data } = event;
      if ('given' in data) this.numbers.hear(data.given);
      else if ('gone' in data) this.known.delete(data.gone);
      else if ('outage' in data) this.onOutage?.(data.outage, data.leftMs);
      else this.known.set(data.id, { at: performance.now(), neighbor: data });
    };
  }

  tell(neighbor: Omit<Neighbor, 'id'>): void {
    this.channel?.postMessage({ id: this.id, ...neighbor } satisfies Neighbor);
  }

  tellOutage(outage: Service, leftMs: number): void {
    this.channel?.postMessage({ outage, leftMs } satisfies ToldOutage);
  }

  /** A number for a new window; the other windows give another. */
  nextNumber(now: number): number {
    for (const { viewer } of this.list(now)) this.numbers.hear(viewer);
    const given = this.numbers.next();
    this.channel?.postMessage({ given });
    return given;
  }

  leave(): void {
    this.channel?.postMessage({ gone: this.id });
  }

  /** The others heard of lately that have a session, by viewer number. */
  list(now: number): Neighbor[] {
    return this.all(now).filter((n) => n.peer !== '');
  }

  /** All others heard of lately, by viewer number. */
  all(now: number): Neighbor[] {
    for (const [id, entry] of this.known) if (now - entry.at > forgetMs) this.known.delete(id);
    return [...this.known.values()].map((entry) => entry.neighbor).sort((a, b) => a.viewer - b.viewer);
  }
}
