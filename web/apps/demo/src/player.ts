import Hls, { type ErrorData, Events, type Fragment } from 'hls.js';
import type { PageOptions } from './film';

/** One media segment as the player asked for it, in the order of arrival. */
export interface PlayedSegment {
  url: string;
  level: number;
  sn: number;
  startMs: number;
  durationMs: number;
  bytes: number;
}

/** What the viewer felt: counted on the video element alone, so it is the same with Leeway and without. */
export interface Experience {
  /** From the page's navigation start to the first `playing`; undefined before it. */
  startupMs: number | undefined;
  /** From the player's creation to the first `playing`. */
  playerStartupMs: number | undefined;
  stalls: number;
  stallMs: number;
  playedMs: number;
  /** Played time × bitrate of the rendition on screen, in bits. */
  playedBits: number;
  switches: number;
  /** How far behind the clock of a live stream it was played, on average; undefined for a film. */
  latencyMs: number | undefined;
}

/** A wait shorter than this is not seen; the element also reports such when it has just begun to play. */
const shortestStallMs = 100;

/** An hls.js player on a video element that keeps the books on startup, stalls and what it played. */
export class Player {
  readonly hls: Hls;
  readonly video: HTMLVideoElement;
  readonly segments: PlayedSegment[] = [];
  /** Fatal error of the player as a sentence, or undefined. */
  failure: string | undefined;
  onSegment: ((segment: PlayedSegment) => void) | undefined;

  private readonly createdAt = performance.now();
  private startedAt: number | undefined;
  private stalls = 0;
  private stalledMs = 0;
  private stalledSince: number | undefined;
  private playedMs = 0;
  private playedBits = 0;
  private lastTime: number | undefined;
  private playingLevel = -1;
  private switches = 0;
  private lagged = 0;
  private laggedFor = 0;

  constructor(video: HTMLVideoElement, src: string, options: PageOptions) {
    this.video = video;
    this.hls = new Hls({
      maxBufferLength: options.maxBuffer,
      maxMaxBufferLength: options.maxBuffer,
      backBufferLength: 30,
      ...(options.level === undefined ? {} : { startLevel: options.level }),
    });
    this.watchVideo();
    this.watchPlayer(options);
    this.hls.attachMedia(video);
    this.hls.loadSource(src);
  }

  /** What the viewer felt so far. */
  experience(): Experience {
    const waiting = this.stalledSince === undefined ? 0 : performance.now() - this.stalledSince;
    const stalled = waiting >= shortestStallMs;
    return {
      startupMs: this.startedAt,
      playerStartupMs: this.startedAt === undefined ? undefined : this.startedAt - this.createdAt,
      stalls: this.stalls + (stalled ? 1 : 0),
      stallMs: this.stalledMs + (stalled ? waiting : 0),
      playedMs: this.playedMs,
      playedBits: this.playedBits,
      switches: this.switches,
      latencyMs: this.laggedFor > 0 ? this.lagged / this.laggedFor : undefined,
    };
  }

  /** How far behind the clock of a live stream the picture is now, in milliseconds; undefined for a film. */
  lag(): number | undefined {
    const shown = this.live() ? this.hls.playingDate : null;
    return shown === null ? undefined : Date.now() - shown.getTime();
  }

  /** Whether more segments may come. */
  live(): boolean {
    const { levels, currentLevel, loadLevel } = this.hls;
    return (levels[currentLevel]?.details ?? levels[loadLevel]?.details)?.live ?? false;
  }

  /** Segments of the rendition being played (else the first), in playback order, empty before the playlist came. */
  fragments(): Fragment[] {
    const { levels, currentLevel, loadLevel } = this.hls;
    const level = levels[currentLevel]?.details ? currentLevel : loadLevel;
    return levels[level]?.details?.fragments ?? [];
  }

  private watchPlayer(options: PageOptions): void {
    const { hls, video } = this;
    hls.on(Events.MANIFEST_PARSED, () => {
      if (options.level !== undefined) hls.currentLevel = Math.min(options.level, hls.levels.length - 1);
      // A refusal (autoplay policy) leaves the controls on screen; nothing else to do.
      if (options.autoplay) video.play().catch(() => undefined);
    });
    hls.on(Events.FRAG_LOADED, (_, { frag }) => {
      if (frag.sn === 'initSegment' || frag.type !== 'main') return;
      const segment: PlayedSegment = {
        url: frag.url,
        level: frag.level,
        sn: frag.sn,
        startMs: Math.round(frag.start * 1000),
        durationMs: Math.round(frag.duration * 1000),
        bytes: frag.stats.total || frag.stats.loaded,
      };
      this.segments.push(segment);
      this.onSegment?.(segment);
    });
    hls.on(Events.FRAG_CHANGED, (_, { frag }) => {
      if (this.playingLevel >= 0 && frag.level !== this.playingLevel) this.switches++;
      this.playingLevel = frag.level;
    });
    hls.on(Events.ERROR, (_, data) => this.onError(data));
  }

  private onError(data: ErrorData): void {
    if (!data.fatal) return;
    if (data.type === Hls.ErrorTypes.MEDIA_ERROR) {
      this.hls.recoverMediaError();
      return;
    }
    const status = data.response?.code ? ` (HTTP ${data.response.code})` : '';
    this.failure = `The film does not load${status}: ${data.details}.`;
  }

  private watchVideo(): void {
    const { video } = this;
    video.addEventListener('playing', () => {
      this.startedAt ??= performance.now();
      this.endStall();
    });
    video.addEventListener('waiting', () => {
      // Before the first picture it is startup delay; while seeking it is the person's own doing.
      if (this.startedAt === undefined || video.seeking || video.ended || video.paused) return;
      this.stalledSince ??= performance.now();
    });
    for (const name of ['pause', 'seeking', 'ended']) video.addEventListener(name, () => this.endStall());
    video.addEventListener('timeupdate', () => {
      const now = video.currentTime;
      const step = this.lastTime === undefined ? 0 : now - this.lastTime;
      this.lastTime = now;
      // A step beyond two seconds is a seek or the loop's turn, not playing.
      if (step <= 0 || step > 2) return;
      this.endStall();
      this.playedMs += step * 1000;
      this.playedBits += step * (this.hls.levels[this.playingLevel]?.bitrate ?? 0);
      const lag = this.lag();
      if (lag !== undefined) {
        this.lagged += lag * step;
        this.laggedFor += step;
      }
    });
  }

  private endStall(): void {
    if (this.stalledSince === undefined) return;
    const waited = performance.now() - this.stalledSince;
    this.stalledSince = undefined;
    if (waited < shortestStallMs) return;
    this.stalls++;
    this.stalledMs += waited;
  }
}
