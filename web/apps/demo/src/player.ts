import type { PageOptions } from './film';
import type { Driver, PlayedSegment, Start } from './players/driver';
import type { Slot } from './timeline';

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

/** A player on a video element, with the books on startup, stalls and what it played. */
export class Player {
  readonly video: HTMLVideoElement;
  readonly segments: PlayedSegment[] = [];
  /** Bytes of all segments, those of a live stream included that the page has forgotten. */
  received = 0;
  /** Fatal error of the player as a sentence, or undefined. */
  failure: string | undefined;
  onSegment: ((segment: PlayedSegment) => void) | undefined;

  private driver: Driver | undefined;
  private createdAt = performance.now();
  private startedAt: number | undefined;
  private stalls = 0;
  private stalledMs = 0;
  private stalledSince: number | undefined;
  private playedMs = 0;
  private playedBits = 0;
  private lastTime: number | undefined;
  private switches = 0;
  private lagged = 0;
  private laggedFor = 0;

  constructor(video: HTMLVideoElement) {
    this.video = video;
    this.watchVideo();
  }

  /** Has a player of the kind that `start` makes play the stream. */
  play(start: Start, src: string, options: PageOptions): void {
    this.createdAt = performance.now();
    this.driver = start(this.video, src, options, {
      segment: (segment) => {
        this.segments.push(segment);
        this.received += segment.bytes;
        this.onSegment?.(segment);
      },
      switched: () => {
        this.switches++;
      },
      failed: (text) => {
        this.failure = text;
      },
    });
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
    return this.driver?.lag();
  }

  /** Whether more segments may come. */
  live(): boolean {
    return this.driver?.live() ?? false;
  }

  /** Segments of the rendition being played, in playback order, empty before the playlist came. */
  slots(): Slot[] {
    return this.driver?.slots() ?? [];
  }

  /** “480p” for a segment's URL, or empty. */
  rendition(url: string): string {
    const height = this.driver?.height(url);
    return height ? `${height}p` : '';
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
    // Until a frozen page is back, which may take hours, nothing of it runs: it waits for no segment.
    document.addEventListener('freeze', () => this.endStall());
    video.addEventListener('timeupdate', () => {
      const now = video.currentTime;
      const step = this.lastTime === undefined ? 0 : now - this.lastTime;
      this.lastTime = now;
      // A step beyond two seconds is a seek or the loop's turn, not playing.
      if (step <= 0 || step > 2) return;
      this.endStall();
      this.playedMs += step * 1000;
      this.playedBits += step * (this.driver?.bitrate() ?? 0);
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
