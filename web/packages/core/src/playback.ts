/** What a player plug-in and the library say to each other about one playback, and what is counted of it. */

import type { EngineSnapshot, ProgressFunction, Reason, SegmentRequest, SegmentResult, StatsDelta } from './ports.ts';
import type { FailReason } from './session/messages.ts';

/** Deltas of what the viewer saw, for the statistics. */
export interface Observation {
  /** Times that playback stopped for want of data after it had begun, without the viewer's doing. */
  stalls: number;
  stall_ms: number;
  played_ms: number;
  /** Bits of media played: time × bitrate of the rendition on screen. */
  played_bits: number;
  switches: number;
  /** From the manifest's request to the first picture; 0: it was there before. Reported once. */
  startup_ms?: number;
  /** What of `played_ms` was of a live stream with a wall clock, and the seconds behind that clock, added up over it. */
  live_ms?: number;
  live_lag?: number;
}

/** What is known of a title. */
export interface TitleSnapshot {
  manifest: string;
  title?: string;
  swarm?: string;
  viewers: number;
  seeds: number;
  /** Links that are open, and that are being opened. */
  links: { open: number; opening: number };
  linkFailures: Partial<Record<FailReason, number>>;
  /** Why segments do not come from peers, while that is so. */
  off: Reason | null;
  /** Totals: bytes, segments, reasons, whatever brought them. */
  totals: StatsDelta;
  playback: Observation;
  engine?: EngineSnapshot;
}

/** One segment on its way to the player. */
export interface Loading {
  /** Rejects with what `SegmentRequest.origin` rejected with, or after `abort`. */
  result: Promise<SegmentResult>;
  abort(): void;
}

/** One manifest that is being played. Made by `Leeway.open`. */
export interface Playback {
  readonly manifest: string;
  /** Whether segments should go through `load`; false: leave the player's own loader alone, and report by `bypass`. */
  readonly active: boolean;
  /** Whether there is no engine, so that the origin alone sends what it is asked for now. */
  readonly alone: boolean;
  load(request: SegmentRequest, onProgress?: ProgressFunction): Loading;
  /** A segment that the player fetched itself: bytes, for the statistics, and ms from the first byte to the last. */
  bypass(bytes: number, ms?: number): void;
  /** Estimated capacity of the downlink, bits per second, if it is known. */
  capacity(): number | undefined;
  observe(delta: Partial<Observation>): void;
  /** Whether the viewer has paused. Paused and hidden for a minute closes the links. */
  setPaused(paused: boolean): void;
  /** Called just before statistics are sent, so that the plug-in can report what it has. */
  onCollect?: () => void;
  close(): void;
}

/** A playback as the library has it. */
export interface Handle extends Playback {
  readonly paused: boolean;
}

/** Whole numbers by name, however deep. */
export type Figures = { [name: string]: number | Figures | undefined };

/** Adds figures to figures, field by field. */
export function add(to: Figures, from: Figures): void {
  for (const name in from) {
    const more = from[name];
    if (typeof more === 'number') to[name] = ((to[name] as number | undefined) ?? 0) + Math.round(more);
    else if (more) {
      to[name] ??= {};
      add(to[name] as Figures, more);
    }
  }
}

/** A segment straight from the origin. */
export async function fromOrigin(
  request: Pick<SegmentRequest, 'origin'>,
  signal: AbortSignal,
  onProgress: ProgressFunction,
  count: (bytes: number) => Reason,
): Promise<SegmentResult> {
  const { data, status } = await request.origin(signal, onProgress);
  const origin = data.byteLength;
  return { data, source: 'origin', reason: count(origin), bytes: { origin, seed: 0, peer: 0 }, status };
}
