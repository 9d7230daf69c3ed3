import type { PageOptions } from '../film';
import type { Slot } from '../timeline';

/** One media segment, or a part of one, as the player asked for it, in the order of arrival. */
export interface PlayedSegment {
  url: string;
  /** Its rendition, the lowest bitrate is 0; -1 where the player does not say. */
  level: number;
  sn: number;
  startMs: number;
  durationMs: number;
  bytes: number;
}

/** What hears of a player while it plays. */
export interface Listener {
  segment(segment: PlayedSegment): void;
  /** Another rendition is on screen. */
  switched(): void;
  /** It cannot go on: a sentence. */
  failed(text: string): void;
}

/** A player that plays one stream, as this page asks it for what it shows. */
export interface Driver {
  /** Segments of the rendition on screen, in playback order; empty before its playlist came. */
  slots(): Slot[];
  /** Whether more segments may come. */
  live(): boolean;
  /** How far behind the clock of a live stream the picture is, milliseconds; undefined for a film. */
  lag(): number | undefined;
  /** Of the rendition on screen, bits per second; 0 unknown. */
  bitrate(): number;
  /** Lines of the picture of the segment with this URL; undefined unknown. */
  height(url: string): number | undefined;
}

/** Has a player of its kind play a stream on a video element. */
export type Start = (video: HTMLVideoElement, src: string, options: PageOptions, listener: Listener) => Driver;
