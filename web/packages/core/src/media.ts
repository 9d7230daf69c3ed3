/** What plug-ins of players read off the media element: startup, stalls, time and bits played, switches, and how far the playhead is. */

import type { Observation } from './playback.ts';
import type { Clock } from './ports.ts';

/** Longer steps of the playhead between two looks are seeks or sleeps, not playback. */
const stepBoundMs = 2_000;
/** Waiting this close to the end is the end. */
const endSeconds = 0.5;

export interface PlaybackObserver {
  /** A new presentation begins: the clock of the startup delay starts. */
  begin(): void;
  attach(media: HTMLMediaElement): void;
  detach(): void;
  /** The rendition on screen changed. */
  switched(): void;
  /** Deltas since the last take. */
  take(): Partial<Observation>;
}

export interface ObserverOptions {
  clock: Clock;
  /** Bits per second of the rendition on screen. */
  bitrate(): number;
  /** Milliseconds that the picture is behind the clock of a live stream; 0 or none: unknown. */
  lag?(): number;
  paused(paused: boolean): void;
  /** The first picture is there. */
  started(): void;
  caught(where: string, error: unknown): void;
}

export function observePlayback(o: ObserverOptions): PlaybackObserver {
  let media: HTMLMediaElement | undefined;
  let beganAt = o.clock.now();
  let started = false;
  let stalledAt = 0;
  let lastTime = 0;
  let lastLook = 0;
  let first = true;
  let delta: Observation = fresh();

  /** Counts how far the playhead has come since the last look, and ends a stall if it has. */
  function look(): void {
    if (!media) return;
    const now = o.clock.now();
    const step = (media.currentTime - lastTime) * 1000;
    lastTime = media.currentTime;
    const elapsed = now - lastLook;
    lastLook = now;
    if (step <= 0 || media.seeking) return;
    start();
    endStall(now);
    if (step > Math.max(stepBoundMs, 2 * elapsed)) return;
    delta.played_ms += step;
    delta.played_bits += (step / 1000) * o.bitrate();
    const lag = o.lag?.() ?? 0;
    if (lag <= 0) return;
    delta.live_ms = (delta.live_ms ?? 0) + step;
    delta.live_lag = (delta.live_lag ?? 0) + (step * lag) / 1000;
  }

  function start(): void {
    if (started) return;
    started = true;
    delta.startup_ms = beganAt && o.clock.now() - beganAt;
    o.started();
  }

  function endStall(now: number): void {
    if (stalledAt > 0) delta.stall_ms += now - stalledAt;
    stalledAt = 0;
  }

  const rest = () => {
    look();
    endStall(o.clock.now());
    o.paused(true);
  };
  /** Waiting after a seek is the seek's; what went before counts up to here. */
  const leap = () => {
    endStall(o.clock.now());
    lastTime = media?.currentTime ?? 0;
  };

  const handlers: Record<string, () => void> = {
    play: () => {
      // A picture that was ready and waited for a click: that wait is the viewer's, not ours.
      if (!started && media && media.readyState >= 3 && !media.autoplay) beganAt = o.clock.now();
      o.paused(false);
    },
    playing: () => {
      if (!media?.seeking) start();
      look();
    },
    timeupdate: look,
    waiting: () => {
      look();
      if (!media || !started || stalledAt > 0 || media.seeking || media.paused || media.ended) return;
      if (media.duration - media.currentTime < endSeconds) return;
      delta.stalls++;
      stalledAt = o.clock.now();
    },
    pause: rest,
    ended: rest,
    seeking: leap,
    emptied: leap,
  };
  const guarded = (event: Event) => {
    try {
      handlers[event.type]!();
    } catch (error) {
      o.caught('observe', error);
    }
  };

  function detach(): void {
    endStall(o.clock.now());
    for (const name in handlers) media?.removeEventListener(name, guarded);
    media = undefined;
  }

  return {
    begin() {
      beganAt = lastLook = o.clock.now();
      started = false;
      first = true;
      stalledAt = 0;
    },
    attach(element) {
      detach();
      media = element;
      // A picture that was there before has taken a time that is not known.
      if (element.readyState > 1) beganAt = 0;
      lastTime = element.currentTime;
      lastLook = o.clock.now();
      for (const name in handlers) element.addEventListener(name, guarded);
      o.paused(element.paused && started);
    },
    detach,
    switched() {
      // The first rendition is no switch.
      if (!first) delta.switches++;
      first = false;
    },
    take() {
      look();
      const now = o.clock.now();
      if (stalledAt > 0) {
        delta.stall_ms += now - stalledAt;
        stalledAt = now;
      }
      const taken = delta;
      delta = fresh();
      return taken;
    },
  };
}

/**
 * Milliseconds until the playhead reaches a moment of the timeline, at the present speed. Nothing buffered means that
 * the player waits for whatever it asked for.
 */
export function deadlineMs(media: HTMLMediaElement | null, startSeconds: number): number {
  if (!media || media.buffered.length === 0) return 0;
  const rate = Math.abs(media.playbackRate) || 1;
  return Math.max(0, ((startSeconds - media.currentTime) * 1000) / rate);
}

/** Whether a `Cache-Control` header says that the response is not to be stored: then it is played, and neither kept nor passed on. */
export const notStored = (header: unknown): boolean => /(^|,)\s*no-store\s*(,|=|$)/i.test(`${header}`);

function fresh(): Observation {
  return { stalls: 0, stall_ms: 0, played_ms: 0, played_bits: 0, switches: 0 };
}
