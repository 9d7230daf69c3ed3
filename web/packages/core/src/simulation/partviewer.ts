/** A viewer of a low-latency stream: an engine, and a player that loads each part when it is listed. */

import type { EngineDeps } from '../enginedeps.ts';
import type { Broadcast } from './broadcast.ts';
import { EdgeViewer } from './edgeviewer.ts';
import type { Signer } from './film.ts';
import type { Network } from './world.ts';

const nothing = () => {};
/** A player begins so many parts behind the last one. */
const behind = 3;

export class PartViewer extends EdgeViewer {
  /** What it plays after the part that it waits for. */
  playing: Broadcast;
  /** What it asks for are segments, and no parts. */
  segments = false;
  /** It waits for what it has asked for. */
  loading = false;

  constructor(id: string, network: Network, broadcast: Broadcast, signer: Signer, deps: Partial<EngineDeps> = {}) {
    super(id, network, signer, deps);
    this.playing = broadcast;
  }

  play(): void {
    const latest = this.playing.latest();
    const { startMs, durationMs } = this.playing.part(latest);
    this.position = startMs + durationMs - behind * durationMs;
    this.bufferedMs = this.position;
    this.update();
    this.next(latest - behind + 1);
  }

  protected plays(): boolean {
    return this.results.length > 0;
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
        deadlineMs: () => this.untilMs(part.startMs),
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
}
