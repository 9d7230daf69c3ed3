/** A viewer at the edge of a low-latency stream: an engine, and what a playhead is of its player. */

import type { EngineDeps } from '../enginedeps.ts';
import type { Emitter } from '../events.ts';
import type { Engine, EngineEvents, PeerLink, SegmentResult } from '../ports.ts';
import * as seldom from '../seldom.ts';
import type { Line } from '../transfer/line.ts';
import { viewerEngine } from './actors.ts';
import type { Signer } from './film.ts';
import type { Network } from './world.ts';

export abstract class EdgeViewer {
  readonly engine: Engine;
  readonly results: SegmentResult[] = [];
  readonly errors: unknown[] = [];
  readonly unlinked: { peer: string; reason: string; banned: boolean }[] = [];
  readonly line: Line;
  readonly events: Emitter<EngineEvents>;
  wrong = 0;
  stalls = 0;
  stallMs = 0;
  adaptive = false;
  abort = () => {};
  /** Of the playhead, and where what it has ends, ms. */
  protected position = 0;
  protected bufferedMs = 0;
  protected stopped = false;
  private updatedAt = 0;

  constructor(
    readonly id: string,
    protected readonly network: Network,
    signer: Signer,
    deps: Partial<EngineDeps>,
  ) {
    const of = viewerEngine(id, network.world, signer, { loadSeldom: async () => seldom, ...deps });
    this.engine = of.engine;
    this.line = of.line;
    this.events = of.events;
    this.events.on('unlink', (u) => this.unlinked.push(u));
  }

  abstract play(): void;

  /** Whether the playhead moves. */
  protected abstract plays(): boolean;

  addLink(link: PeerLink): void {
    this.engine.addLink(link);
  }

  stop(): void {
    this.stopped = true;
    this.engine.stop();
  }

  protected update(): void {
    const now = this.network.world.now();
    if (this.plays()) {
      this.position += now - this.updatedAt;
      const over = this.position - this.bufferedMs;
      if (over > 0.5) {
        this.stalls++;
        this.stallMs += over;
      }
      this.position = Math.min(this.position, this.bufferedMs);
    }
    this.updatedAt = now;
  }

  /** How long until the playhead is there, ms. */
  protected untilMs(startMs: number): number {
    this.update();
    return this.plays() ? Math.max(0, startMs - this.position) : 0;
  }

  bytes(from = 0): Record<'origin' | 'seed' | 'peer', number> {
    const sum = { origin: 0, seed: 0, peer: 0 };
    for (const r of this.results.slice(from)) for (const k of ['origin', 'seed', 'peer'] as const) sum[k] += r.bytes[k];
    return sum;
  }
}
