/**
 * How one title's segments are loaded: by the engine once there is one, straight from the origin until then, and held
 * for a moment where the time allows it while a session is coming up.
 */

import { fromOrigin, type Loading } from '../playback.ts';
import type { Clock, Engine, ProgressFunction, Reason, SegmentRef, SegmentRequest } from '../ports.ts';
import { urgentWindow } from '../schedule/decide.ts';
import { defaultPolicy } from '../schedule/input.ts';
import type { Line } from '../transfer/line.ts';

/** Segments from before there was an engine that it may share: players ask for two or three in that time. */
const mostEarly = 4;

/** How long segments that can wait are held for a session that is just coming up. */
export const startGraceMs = 2_500;

export interface LoadingHost {
  clock: Clock;
  line: Line;
  engine(): Engine | undefined;
  /** Whether a session, or the join, is on its way for the first time. */
  mayStart(): boolean;
  /** Counts a segment that came without the engine; says why. */
  bypass(bytes: number): Reason;
  caught(where: string, error: unknown): void;
}

export interface SegmentLoads {
  /**
   * By the engine if there is one, straight from the origin otherwise. A defect of the engine falls back to the origin
   * too; the origin's own errors are the player's business.
   */
  load(request: SegmentRequest, onProgress: ProgressFunction): Loading;
  /** It is clear whether there is an engine: what was held goes on. */
  goOn(): void;
  /** What is held, and what follows the last that was asked for. */
  next(): SegmentRef[];
}

export function createLoading({ clock, line, engine, mayStart, bypass, caught }: LoadingHost): SegmentLoads {
  /** Segments held back until it is clear whether there is an engine. */
  const held = new Map<() => void, SegmentRef>();
  let upcoming: SegmentRef[] = [];
  /** What came from the origin before it was. */
  const early: [request: SegmentRequest, data: Uint8Array][] = [];

  const hold = (request: SegmentRequest, signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      // As long as the schedule would hold it, could it already decide.
      const { durationMs, bitrate } = request;
      const timing = { duration_us: durationMs * 1000, origin_us: line.timeUs((bitrate * durationMs) / 8000) };
      const slack = request.deadlineMs() - urgentWindow(timing, defaultPolicy.urgent_permille) / 1000;
      if (slack <= 0 || !mayStart()) return resolve();
      const go = () => {
        held.delete(go);
        clock.clearTimer(timer);
        if (signal.aborted) reject(new Error('aborted'));
        else resolve();
      };
      const timer = clock.setTimer(go, Math.min(startGraceMs, slack));
      held.set(go, request);
      signal.addEventListener('abort', go);
    });

  /**
   * Has the engine share a segment that came without it, as soon as there is one: without the first segments of the first
   * viewers nobody could begin while the origin is down. A copy, since the player may transfer its buffer away.
   */
  const keep = (request: SegmentRequest, data: ArrayBuffer) => {
    const now = engine();
    if (!now && (!mayStart() || early.length === mostEarly)) return;
    const copy = new Uint8Array(data.slice(0));
    if (now) now.adopt(request, copy);
    else early.push([request, copy]);
  };

  return {
    next: () => [...held.values(), ...upcoming],
    load(request, onProgress) {
      ({ upcoming } = request);
      const controller = new AbortController();
      const { signal } = controller;
      let inner: Loading | undefined;
      const run = async () => {
        if (!engine()) await hold(request, signal);
        let refusal: unknown;
        const origin: SegmentRequest['origin'] = (...args) =>
          request.origin(...args).catch((error: unknown) => {
            refusal = error;
            throw error;
          });
        try {
          inner = engine()?.load({ ...request, origin }, onProgress);
          if (inner) return await inner.result;
        } catch (error) {
          if (signal.aborted || error === refusal) throw error;
          caught('load', error);
        }
        const result = await fromOrigin(
          { origin: (...how) => line.fetch(request, ...how) },
          signal,
          onProgress,
          bypass,
        );
        keep(request, result.data);
        return result;
      };
      return {
        result: run(),
        abort() {
          controller.abort();
          inner?.abort();
        },
      };
    },
    goOn() {
      for (const go of [...held.keys()]) go();
      for (const segment of early.splice(0)) engine()?.adopt(...segment);
    },
  };
}
