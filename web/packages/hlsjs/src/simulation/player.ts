/** hls.js in virtual time: its own bitrate choice over a loader that a test gives it. */

import Hls from 'hls.js';
import { vi } from 'vitest';
import type { World } from '../../../core/src/simulation/world.ts';
import type {
  FragmentContext,
  FragmentLike,
  FragmentLoaderLike,
  HlsConfig,
  HlsLike,
  LoaderConstructor,
  LoaderStats,
} from '../hls.ts';
import type { RenditionFilm } from './line.ts';
import { segmentMs } from './line.ts';

// biome-ignore lint/suspicious/noExplicitAny: a controller of hls.js, whose class its types do not name
type Abr = any;

/** How far ahead the player buffers. */
const aheadMs = 20_000;
const tickMs = 100;

export interface Frag extends FragmentLike {
  stats: LoaderStats & { parsing: { start: number; end: number } };
  bitrate: number | null;
  bitrateTest: boolean;
  abortRequests(): void;
}

/** Makes the globals that hls.js reads follow the world's clock. */
export function stubGlobals(world: World): void {
  const timers = new Map<number, number>();
  const setInterval = (f: () => void, ms: number) => {
    const again = () => {
      f();
      if (timers.has(id)) timers.set(id, world.setTimer(again, ms));
    };
    const id = world.setTimer(again, ms);
    timers.set(id, id);
    return id;
  };
  const clearInterval = (id: number) => {
    world.clearTimer(timers.get(id) ?? 0);
    timers.delete(id);
  };
  vi.stubGlobal('performance', { now: () => world.now() });
  vi.stubGlobal('self', { performance, setInterval, clearInterval });
}

export class Player {
  readonly config: HlsConfig & Record<string, unknown>;
  readonly url = 'https://video.example.com/film/master.m3u8';
  readonly levels: (HlsLike['levels'][number] & Record<string, unknown>)[];
  readonly logger = { log() {}, warn() {}, info() {}, debug() {}, error() {}, trace() {} };
  readonly firstLevel = 0;
  readonly minAutoLevel = 0;
  readonly maxAutoLevel: number;
  readonly autoLevelEnabled = true;
  readonly allAudioTracks = [];
  readonly media: HTMLMediaElement;
  readonly abr: Abr;
  loadLevel = -1;
  currentLevel = -1;
  /** Level of each segment that was buffered. */
  readonly chosen: number[] = [];
  /** The estimate after each. */
  readonly estimates: number[] = [];
  stallMs = 0;
  private readonly listeners: { event: string; f: (event: string, data: never) => void; context: unknown }[] = [];
  protected bufferedMs = 0;
  protected positionMs = 0;
  private updatedAt: number;

  constructor(
    protected readonly world: World,
    private readonly film: Pick<RenditionFilm, 'renditions' | 'segments' | 'segment'>,
    loader: LoaderConstructor,
    protected readonly draw: () => number,
  ) {
    this.config = { ...Hls.DefaultConfig, loader, fLoader: undefined } as never;
    this.levels = film.renditions.map(({ peak, average }) => ({
      bitrate: peak,
      maxBitrate: peak,
      averageBitrate: average,
      codecSet: 'avc1,mp4a',
      videoRange: 'SDR',
      frameRate: 24,
      width: 640,
      height: 360,
      score: 0,
      loadError: 0,
      fragmentError: 0,
      supportedResult: { supported: true, decodingInfoResults: [] },
    }));
    this.maxAutoLevel = this.levels.length - 1;
    this.updatedAt = world.now();
    const self = this;
    this.media = {
      paused: false,
      playbackRate: 1,
      readyState: 4,
      get currentTime() {
        self.update();
        return self.positionMs / 1000;
      },
      get buffered() {
        return { length: self.bufferedMs > 0 ? 1 : 0 };
      },
    } as unknown as HTMLMediaElement;
    this.abr = new (Hls.DefaultConfig.abrController as unknown as new (hls: unknown) => unknown)(this);
  }

  on(event: string, f: (event: string, data: never) => void, context: unknown = this): void {
    this.listeners.push({ event, f, context });
  }
  off(): void {}
  trigger(event: string, data: unknown): void {
    for (const l of this.listeners) if (l.event === event) l.f.call(l.context, event, data as never);
  }
  get mainForwardBufferInfo() {
    this.update();
    return { len: Math.max(0, this.bufferedMs - this.positionMs) / 1000 };
  }
  get ttfbEstimate(): number {
    return this.abr.bwEstimator.getEstimateTTFB();
  }
  get estimate(): number {
    return this.abr.bwEstimator.getEstimate();
  }
  get latestLevelDetails(): { live: boolean } {
    return { live: false };
  }
  get loadLevelObj() {
    return this.levels[this.loadLevel] ?? null;
  }
  get nextLoadLevel(): number {
    return this.abr.nextAutoLevel;
  }
  set nextLoadLevel(level: number) {
    this.loadLevel = level;
    this.nextAutoLevel = level;
  }
  get nextAutoLevel(): number {
    return this.abr.nextAutoLevel;
  }
  set nextAutoLevel(level: number) {
    this.abr.nextAutoLevel = level;
  }

  protected update(): void {
    const now = this.world.now();
    if (this.bufferedMs > 0) {
      const to = this.positionMs + now - this.updatedAt;
      this.positionMs = Math.min(to, this.bufferedMs);
      this.stallMs += to - this.positionMs;
    }
    this.updatedAt = now;
  }

  protected wait(ms: number): Promise<void> {
    return new Promise((resolve) => this.world.setTimer(resolve, ms));
  }

  /** Plays so many segments, as stream controller and level controller do it. */
  async play(count: number): Promise<void> {
    this.trigger('hlsManifestLoading', {});
    this.nextLoadLevel = 0;
    await this.playlist();
    await this.fetch(0, true);
    for (let n = 0; n < count; ) {
      this.choose();
      await this.playlist();
      if (await this.fetch(n, false)) n++;
      while (this.mainForwardBufferInfo.len * 1000 >= aheadMs) await this.wait(tickMs);
    }
    this.abr.clearTimer();
  }

  /** Goes on with the level that its controller wants. */
  protected choose(): void {
    const level = this.nextLoadLevel;
    if (level !== this.loadLevel) {
      this.loadLevel = level;
      this.trigger('hlsLevelSwitching', {});
    }
    this.nextAutoLevel = level;
  }

  /** The playlist of the level, once. */
  private async playlist(): Promise<void> {
    const level = this.levels[this.loadLevel]!;
    if (level.details) return;
    await this.wait(30);
    const fragments = Array.from({ length: this.film.segments.length / this.levels.length }, (_, n) =>
      this.fragment(n, this.loadLevel),
    );
    level.details = { fragments, live: false, averagetargetduration: segmentMs / 1000 } as never;
    this.trigger('hlsLevelLoaded', {
      details: level.details,
      levelInfo: level,
      stats: { loading: { start: 0, first: 5, end: 10 } },
    });
  }

  private fragment(n: number, level: number): FragmentLike {
    const { url } = this.film.segment(level, n);
    return { sn: n, start: (n * segmentMs) / 1000, duration: segmentMs / 1000, level, type: 'main', url };
  }

  /** Whether a loader brings what is asked for. */
  protected load(loader: FragmentLoaderLike, context: FragmentContext): Promise<boolean> {
    return new Promise<boolean>((resolve) => {
      const ends = [true, false, false, false].map((ok) => () => resolve(ok));
      const [onSuccess, onError, onTimeout, onAbort] = ends as [() => void, () => void, () => void, () => void];
      const policy = { loadPolicy: { maxLoadTimeMs: 20_000 } };
      loader.load(context, policy, { onSuccess, onError, onTimeout, onAbort });
    });
  }

  /** Loads a fragment and buffers it, unless it only tests the line; false if it was aborted. */
  private async fetch(n: number, bitrateTest: boolean): Promise<boolean> {
    const { config, loadLevel } = this;
    const loader = new (config.fLoader ?? config.loader)(config);
    const { url } = this.fragment(n, loadLevel);
    const frag: Frag = {
      ...this.fragment(n, loadLevel),
      bitrateTest,
      stats: Object.assign(loader.stats, { parsing: { start: 0, end: 0 } }),
      get bitrate() {
        return (this.stats.total * 8) / this.duration || null;
      },
      abortRequests: () => loader.abort(),
    };
    const context = { frag, part: null, url, headers: {}, rangeStart: 0, rangeEnd: 0 };
    const loaded = this.load(loader, context);
    this.trigger('hlsFragLoading', { frag });
    const ok = await loaded;
    loader.destroy();
    if (!ok) return false;
    const { parsing } = frag.stats;
    parsing.start = parsing.end = this.world.now();
    this.trigger('hlsFragLoaded', { frag, part: null });
    if (bitrateTest) return true;
    await this.wait(5 + 20 * this.draw());
    parsing.end = this.world.now();
    this.update();
    this.bufferedMs = (n + 1) * segmentMs;
    this.currentLevel = loadLevel;
    this.trigger('hlsFragBuffered', { frag, part: null });
    this.chosen.push(loadLevel);
    this.estimates.push(this.estimate);
    return true;
  }
}
