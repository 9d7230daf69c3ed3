/** hls.js, media elements and the library as tests need them. */

import type { Clock, Leeway, Observation, OriginResult, Playback, SegmentRequest, SegmentResult } from '@leeway/core';
import type { FragmentContext, FragmentLoaderLike, HlsLike, LoaderCallbacks, LoaderStats } from './hls.ts';

export class TestClock implements Clock {
  time = 10_000;
  private id = 1;
  readonly timers = new Map<number, { at: number; f: () => void }>();
  now(): number {
    return this.time;
  }
  setTimer(f: () => void, ms: number): number {
    this.timers.set(this.id, { at: this.time + ms, f });
    return this.id++;
  }
  clearTimer(id: number): void {
    this.timers.delete(id);
  }
  async advance(ms: number): Promise<void> {
    const end = this.time + ms;
    for (;;) {
      const due = [...this.timers].filter(([, t]) => t.at <= end).sort((a, b) => a[1].at - b[1].at)[0];
      if (!due) break;
      this.timers.delete(due[0]);
      this.time = due[1].at;
      due[1].f();
      await settle();
    }
    this.time = end;
    await settle();
  }
}

export async function settle(): Promise<void> {
  for (let i = 0; i < 30; i++) await Promise.resolve();
}

export function newStats(): LoaderStats {
  return { aborted: false, loaded: 0, total: 0, retry: 0, loading: { start: 0, first: 0, end: 0 } };
}

/** The loader that a page had before. Like that of hls.js, it can be used once. */
export class PreviousLoader implements FragmentLoaderLike {
  static made: PreviousLoader[] = [];
  stats = newStats();
  context: FragmentContext | null = null;
  callbacks: LoaderCallbacks | undefined;
  aborted = 0;
  destroyed = false;
  readonly config: unknown;

  constructor(config: unknown) {
    this.config = config;
    PreviousLoader.made.push(this);
  }
  load(context: FragmentContext, _config: unknown, callbacks: LoaderCallbacks): void {
    if (this.stats.loading.start) throw new Error('Loader can only be used once.');
    this.stats.loading.start = 1;
    this.context = context;
    this.callbacks = callbacks;
    // As CMCD does it.
    context.url += '#cmcd';
  }
  abort(): void {
    this.aborted++;
    this.stats.aborted = true;
    this.callbacks?.onAbort?.(this.stats, this.context!, 'xhr');
  }
  destroy(): void {
    this.destroyed = true;
    this.callbacks = undefined;
  }
  succeed(bytes: number, details: unknown = 'xhr'): void {
    this.stats.loading = { start: 100, first: 150, end: 300 };
    this.stats.loaded = this.stats.total = bytes;
    const response = { url: 'https://cdn/redirected', data: new ArrayBuffer(bytes), code: 206 };
    this.callbacks?.onSuccess(response, this.stats, this.context!, details);
  }
}

/** A handle whose segments are served by hand. */
export class FakePlayback implements Playback {
  manifest = 'm';
  active = true;
  alone = false;
  bps: number | undefined;
  bypassed: [bytes: number, ms?: number] | undefined;
  crowded: boolean | undefined;
  paused: boolean | undefined;
  closed = false;
  observed: Partial<Observation>[] = [];
  onCollect?: () => void;
  request: SegmentRequest | undefined;
  progress: (loaded: number, total: number) => void = () => {};
  origin: OriginResult | undefined;
  aborts = 0;
  resolve: (result: SegmentResult) => void = () => {};
  reject: (error: unknown) => void = () => {};

  load(request: SegmentRequest, onProgress = (_loaded: number, _total: number) => {}): ReturnType<Playback['load']> {
    this.request = request;
    this.progress = onProgress;
    const result = new Promise<SegmentResult>((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    return {
      result,
      abort: () => {
        this.aborts++;
      },
    };
  }
  /** Serves what was asked from the origin, as the engine does when it must. */
  fromOrigin(signal = new AbortController().signal): void {
    this.request!.origin(signal, (loaded, total) => this.progress(loaded, total)).then(
      (origin) => {
        this.origin = origin;
        const { data, status } = origin;
        const bytes = { origin: data.byteLength, seed: 0, peer: 0 };
        this.resolve({ data, status, source: 'origin', reason: 'urgent', bytes, crowded: this.crowded });
      },
      (error: unknown) => this.reject(error),
    );
  }
  bypass(...transfer: [bytes: number, ms?: number]): void {
    this.bypassed = transfer;
  }
  capacity(): number | undefined {
    return this.bps;
  }
  observe(delta: Partial<Observation>): void {
    this.observed.push(delta);
  }
  setPaused(paused: boolean): void {
    this.paused = paused;
  }
  close(): void {
    this.closed = true;
  }
}

export class FakeMedia extends EventTarget {
  currentTime = 0;
  playbackRate = 1;
  paused = true;
  seeking = false;
  ended = false;
  autoplay = false;
  readyState = 0;
  duration = 600;
  buffered = { length: 0 };
  fire(...types: string[]): void {
    for (const type of types) this.dispatchEvent(new Event(type));
  }
}

/** As much of a player as the plug-in touches; its events go through `trigger`, as those of hls.js do. */
export class FakeHls {
  config: HlsLike['config'] = { loader: PreviousLoader };
  url: string | null = null;
  media: HTMLMediaElement | null = null;
  levels: HlsLike['levels'] = [{ bitrate: 500_000 }, { bitrate: 1_500_000 }];
  audioTracks = [];
  currentLevel = 0;
  autoLevelEnabled = true;
  ttfbEstimate = 50;
  private readonly listeners = new Map<string, Set<(event: string, data: never) => void>>();
  on(event: string, f: (event: string, data: never) => void): void {
    this.listeners.set(event, (this.listeners.get(event) ?? new Set()).add(f));
  }
  off(event: string, f: (event: string, data: never) => void): void {
    this.listeners.get(event)?.delete(f);
  }
  listening(): number {
    return [...this.listeners.values()].reduce((n, set) => n + set.size, 0);
  }
  trigger(event: string, data?: unknown): boolean {
    for (const f of [...(this.listeners.get(event) ?? [])]) f(event, data as never);
    return true;
  }
  loadSource(url: string): void {
    this.url = url;
    this.trigger('hlsManifestLoading', { url });
  }
}

export function fakeLeeway(clock: Clock): { leeway: Leeway; opened: FakePlayback[]; caught: unknown[] } {
  const opened: FakePlayback[] = [];
  const caught: unknown[] = [];
  const leeway = {
    clock,
    open: (manifest: string) => {
      const playback = new FakePlayback();
      playback.manifest = manifest;
      opened.push(playback);
      return playback;
    },
    caught: (where: string, error: unknown) => caught.push(where, error),
  } as unknown as Leeway;
  return { leeway, opened, caught };
}
