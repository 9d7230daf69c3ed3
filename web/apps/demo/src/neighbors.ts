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

/** A window not heard of for this long is gone; hidden windows still speak once a second. */
const forgetMs = 3500;

/**
 * The windows of this demo on this machine, by a broadcast channel: a page sees only its own links, and the picture is
 * better when each window adds its own. Nothing depends on it.
 */
export class Neighbors {
  private readonly channel: BroadcastChannel | undefined;
  private readonly known = new Map<string, { at: number; neighbor: Neighbor }>();

  constructor(film: string) {
    if (typeof BroadcastChannel === 'undefined') return;
    this.channel = new BroadcastChannel(`leeway-demo ${film}`);
    this.channel.onmessage = (event: MessageEvent<Neighbor | { gone: string }>) => {
      const { data } = event;
      if ('gone' in data) this.known.delete(data.gone);
      else this.known.set(data.peer, { at: performance.now(), neighbor: data });
    };
  }

  tell(neighbor: Neighbor): void {
    this.channel?.postMessage(neighbor);
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
