/** A viewer of a low-latency stream: an engine, and a player that loads each part when it is listed. */

import type { EngineDeps } from '../enginedeps.ts';
import type { Emitter } from '../events.ts';
import type { Engine, EngineEvents, PeerLink, SegmentResult } from '../ports.ts';
import * as seldom from '../seldom.ts';
import type { Line } from '../transfer/line.ts';
import { viewerEngine } from './actors.ts';
import type { Broadcast } from './broadcast.ts';
import type { Signer } from './film.ts';
import type { Network } from './world.ts';

const nothing = () => {};
/** A player begins so far behind the last part. */
const behindMs = 1_500;

export class PartViewer {
  readonly engine: Engine;
  readonly results: SegmentResult[] = [];
  readonly errors: unknown[] = [];
  readonly unlinked: { peer: string; reason: string; banned: boolean }[] = [];
  readonly line: Line;
  wrong = 0;
  stalls = 0;
  stallMs = 0;
  adaptive = false;
  /** What it plays after the part that it waits for. */
  playing: Broadcast;
  /** What it asks for are segments, and no parts. */
  segments = false;
  abort = nothing;
  /** It waits for what it has asked for. */
  loading = false;
  readonly events: Emitter<EngineEvents>;
  private position = 0;
  private bufferedMs = 0;
  private updatedAt = 0;
  private stopped = false;

  constructor(
    readonly id: string,
    private readonly network: Network,
    broadcast: Broadcast,
    signer: Signer,
    deps: Partial<EngineDeps> = {},
  ) {
    this.playing = broadcast;
    const of = viewerEngine(id, network.world, signer, { loadSeldom: async () => seldom, ...deps });
    this.engine = of.engine;
    this.line = of.line;
    this.events = of.events;
    this.events.on('unlink', (u) => this.unlinked.push(u));
  }

  addLink(link: PeerLink): void {
    this.engine.addLink(link);
  }

  play(): void {
    const latest = this.playing.latest();
    const { startMs, durationMs } = this.playing.part(latest);
    this.position = startMs + durationMs - behindMs;
    this.bufferedMs = this.position;
    this.updatedAt = this.network.world.now();
    this.next(latest - behindMs / durationMs + 1);
  }

  stop(): void {
    this.stopped = true;
    this.engine.stop();
  }

  private update(): void {
    const now = this.network.world.now();
    if (this.results.length) {
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

  private next(n: number): void {
    const due = this.playing.dueMs(n);
    if (due > 0) this.network.world.setTimer(() => this.next(n), due);
    else if (!this.stopped) this.load(n);
  }

  private load(n: number): void {
    const { playing } = this;
    const part = playing.part(n);
    const { sequence, index, name, ...ref } = part;
    const load = this.engine.load(
      {
        ...ref,
        rendition: playing.rendition,
        bitrate: Math.round((playing.partBytes * 8_000) / playing.partMs),
        adaptive: this.adaptive,
        deadlineMs: () => {
          this.update();
          return this.results.length ? Math.max(0, part.startMs - this.position) : 0;
        },
        upcoming: [],
        track: 'main',
        live: true,
        playlist: playing.playlist,
        part: this.segments ? undefined : { sequence, index, listed: () => playing.listed() },
        origin: playing.fetcher(this.id, name),
        beside: (url, signal) => playing.fetchBeside(this.id, part, n, url, signal),
      },
      nothing,
    );
    this.abort = load.abort;
    this.loading = true;
    const over = () => {
      this.loading = false;
    };
    load.result.then(over, over);
    load.result.then(
      (r) => {
        this.update();
        this.results.push(r);
        if (!Buffer.from(r.data).equals(playing.content(name))) this.wrong++;
        this.bufferedMs = part.startMs + part.durationMs;
        this.next(n + 1);
      },
      (error) => this.errors.push(error),
    );
  }

  bytes(from = 0): Record<'origin' | 'seed' | 'peer', number> {
    const sum = { origin: 0, seed: 0, peer: 0 };
    for (const r of this.results.slice(from)) for (const k of ['origin', 'seed', 'peer'] as const) sum[k] += r.bytes[k];
    return sum;
  }
}
