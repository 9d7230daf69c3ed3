import type { Source } from './delivery';

/** What a window of this demo tells the others, once a second. */
export interface Neighbor {
  /** The window's session at the tracker: its peer ID. */
  peer: string;
  viewer: number;
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

/** A window not heard of for this long is gone; hidden windows still speak once a second. */
const forgetMs = 3500;

/**
 * The windows of this demo on this machine, by a broadcast channel: a page sees only its own links, and the picture is
 * better when each window adds its own. Nothing depends on it.
 */
export class Neighbors {
  private readonly channel: BroadcastChannel | undefined;
  private readonly numbers: Numbers;
  private readonly known = new Map<string, { at: number; neighbor: Neighbor }>();

  constructor(film: string, own: number) {
    this.numbers = new Numbers(own);
    if (typeof BroadcastChannel === 'undefined') return;
    this.channel = new BroadcastChannel(`leeway-demo ${film}`);
    this.channel.onmessage = (event: MessageEvent<Neighbor | { gone: string } | { given: number }>) => {
      const { data } = event;
      if ('given' in data) this.numbers.hear(data.given);
      else if ('gone' in data) this.known.delete(data.gone);
      else this.known.set(data.peer, { at: performance.now(), neighbor: data });
    };
  }

  tell(neighbor: Neighbor): void {
    this.channel?.postMessage(neighbor);
  }

  /** A number for a new window; the other windows give another. */
  nextNumber(now: number): number {
    for (const { viewer } of this.list(now)) this.numbers.hear(viewer);
    const given = this.numbers.next();
    this.channel?.postMessage({ given });
    return given;
  }

  leave(peer: string): void {
    this.channel?.postMessage({ gone: peer });
  }

  /** The others heard of lately, by viewer number. */
  list(now: number): Neighbor[] {
    for (const [peer, entry] of this.known) if (now - entry.at > forgetMs) this.known.delete(peer);
    return [...this.known.values()].map((entry) => entry.neighbor).sort((a, b) => a.viewer - b.viewer);
  }
}
