/**
 * How one title's segments are loaded: by the engine once there is one, straight from the origin until then. What can
 * wait is held for a moment where a seed has been introduced, and for nothing else.
 */

import { fromOrigin, type Loading } from '../playback.ts';
import type { Clock, Engine, ProgressFunction, Reason, SegmentRef, SegmentRequest } from '../ports.ts';
import { defaultPolicy } from '../schedule/input.ts';
import { thin, urgentWindow } from '../schedule/segment.ts';
import { type Credit, creditMs } from '../transfer/credit.ts';
import type { Line } from '../transfer/line.ts';
import { paced } from '../transfer/paced.ts';

/** Segments from before there was an engine that it may share: players ask for two or three in that time, for seven over a thin line. */
const mostEarly = 8;

export interface LoadingHost {
  clock: Clock;
  line: Line;
  credit: Credit;
  engine(): Pick<Engine, 'load' | 'adopt'> | undefined;
  /** Whether a session, or the join, is on its way for the first time. */
  mayStart(): boolean;
  /** Whether the engine is about to come, and a seed with it. */
  awaitsSeed(): boolean;
  /** The first picture is in hand, or the origin fails (`Membership`). */
  pictured(filling: boolean): void;
  /** A request waits for a seed, and nothing that the player asked for is on its way: engine and links take nothing from it. */
  awaited(): void;
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
  /** It is clear whether there is an engine, or there is no seed any more: what was held goes on. */
  goOn(): void;
  /** What is held, and what follows the last that was asked for. */
  next(): SegmentRef[];
}

export function createLoading(host: LoadingHost): SegmentLoads {
  const { clock, line, credit, engine, mayStart, bypass, caught } = host;
  /** Segments held back until it is clear whether there is an engine. */
  const held = new Map<() => void, SegmentRef>();
  let upcoming: SegmentRef[] = [];
  /** Requests at the origin that left without the engine. */
  let underway = 0;
  /** What came from the origin before it was. */
  const early: [request: SegmentRequest, data: Uint8Array][] = [];

  /** How long the schedule would hold it, could it already decide. */
  const patienceMs = ({ durationMs, bitrate, deadlineMs, part, live }: SegmentRequest) => {
    if (part || engine()) return 0;
    const timing = { duration_us: durationMs * 1000, origin_us: line.timeUs((bitrate * durationMs) / 8000) };
    const handMs = deadlineMs();
    const slow = !live && thin(timing, handMs * 1000);
    // A line that is slower still would lose the buffer meanwhile, and needs peers. So does what the origin answers with an error.
    if (handMs > 0 || line.failedAt) host.pictured(slow && 7 * timing.origin_us < 8 * timing.duration_us);
    if (slow || !host.awaitsSeed()) return 0;
    const slack = handMs - urgentWindow(timing, defaultPolicy.urgent_permille) / 1000;
    return Math.min(slack, credit.leftMs() ?? creditMs);
  };

  const hold = (request: SegmentRequest, ms: number, signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const go = () => {
        held.delete(go);
        credit.waits(held, held.size > 0);
        clock.clearTimer(timer);
        if (signal.aborted) reject(new Error('aborted'));
        else resolve();
      };
      const timer = clock.setTimer(go, ms);
      held.set(go, request);
      if (!underway) host.awaited();
      credit.waits(held, true);
      signal.addEventListener('abort', go);
    });

  /**
   * Has the engine share a segment that came without it, as soon as there is one: without the first segments of the first
   * viewers none could begin while the origin is down. A copy, since the player may transfer its buffer away.
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
    load(asked, tell) {
      const request = asked.growing ? paced(asked, clock, line) : asked;
      let most = 0;
      // The origin and peers may send the same segment at once, and each says how far it is. Players give up what falls back.
      const onProgress: ProgressFunction = (loaded, total) => {
        most = Math.max(most, loaded);
        tell(most, total);
      };
      ({ upcoming } = request);
      const controller = new AbortController();
      const { signal } = controller;
      let inner: Loading | undefined;
      const run = async () => {
        // Nothing is awaited where there is nothing to wait for: the request leaves in the turn in which the player made it.
        const ms = patienceMs(request);
        if (ms > 0) await hold(request, ms, signal);
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
        let unshared: boolean | undefined;
        underway++;
        const result = await fromOrigin(
          {
            origin: async (...how) => {
              const came = await line.fetch(request, ...how);
              ({ unshared } = came);
              return came;
            },
          },
          signal,
          onProgress,
          bypass,
        ).finally(() => underway--);
        if (!unshared) keep(request, result.data);
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
      // A session that is lost comes back, and the engine with it.
      if (!engine() && mayStart()) return;
      for (const segment of early.splice(0)) engine()?.adopt(...segment);
    },
  };
}
