/** A viewer's line in virtual time, and films in several renditions. */

import { Film } from '../../../core/src/simulation/film.ts';
import { Network, type World } from '../../../core/src/simulation/world.ts';

/** Numbers in [0, 1) that a seed decides. */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

export interface LineOptions {
  /** Bits per second at a time since the start, ms. */
  rate(ms: number): number;
  /** Whether what peers send comes by the same line; else it comes by one that is never full. */
  shared: boolean;
}

/** The network of the core's simulation with a line before one node, whose rate may change with time. */
export class HomeNetwork extends Network {
  /** When the line has carried all that was put on it. */
  private free = 0;

  constructor(
    world: World,
    private readonly home: string,
    private readonly line: LineOptions,
    delayMs = 10,
  ) {
    super(world, delayMs);
  }

  override send(from: string, to: string, bytes: number, sent: () => void, arrived: () => void): void {
    const byLine = to === this.home && (from === 'origin' || this.line.shared);
    super.send(from, to, bytes, sent, () => {
      if (!byLine) return arrived();
      const { world } = this;
      const start = Math.max(world.now(), this.free);
      this.free = start + (bytes * 8000) / this.line.rate(start);
      world.setTimer(arrived, this.free - world.now());
    });
  }
}

export const segmentMs = 4000;

/** Bits per second as a master playlist has them. */
export interface Rendition {
  peak: number;
  average: number;
}

/** One film in several renditions. Scenes differ in what they need. */
export class RenditionFilm extends Film {
  private readonly sizes = new Map<string, number>();

  constructor(
    count: number,
    readonly renditions: Rendition[],
  ) {
    super(0, segmentMs, 0);
    const draw = random(7);
    for (let n = 0; n < count; n++) {
      const scene = draw();
      renditions.forEach(({ peak, average }, level) => {
        const name = `/film/${level}/${n}.ts`;
        const url = `https://video.example.com${name}`;
        this.segments.push({ url, name, startMs: n * segmentMs, durationMs: segmentMs });
        // Uniform around the average, at most the peak.
        const bits = average + (peak - average) * (2 * scene - 1);
        this.sizes.set(name, Math.round((bits * segmentMs) / 8000));
      });
    }
  }

  segment(level: number, n: number) {
    return this.segments[n * this.renditions.length + level]!;
  }

  override content(name: string): Uint8Array {
    const bytes = new Uint8Array(this.sizes.get(name)!);
    bytes.fill(name.length + name.charCodeAt(name.length - 4));
    return bytes;
  }
}
