/** A player's hold on a title. Titles come and go with consent and restarts; the player keeps its handle. */

import { fromOrigin, type Handle, type Loading, type Observation } from './playback.ts';
import type { ProgressFunction, Reason, SegmentRequest } from './ports.ts';

/** What a handle needs of its title. */
export interface PlayedTitle {
  /** Players that have this title open. */
  readonly handles: Set<Handle>;
  readonly closed: boolean;
  /** Segments go through `load` unless it is certain that no peer delivery comes. */
  readonly active: boolean;
  /** There is no engine. */
  readonly alone: boolean;
  load(request: SegmentRequest, onProgress: ProgressFunction): Loading;
  /** Counts a segment that came from the origin without the engine. Returns the reason why. */
  bypass(bytes: number, ms?: number): Reason;
  capacity(): number | undefined;
  observe(delta: Partial<Observation>): void;
  /** Has a player report what it has. */
  collect(handle: Handle): void;
}

export interface HandleOptions<T extends PlayedTitle> {
  manifest: string;
  /** The title as it stands; undefined while there is no session to have one. */
  find(): T | undefined;
  released(title: T): void;
  pausedChanged(): void;
}

export function createHandle<T extends PlayedTitle>(o: HandleOptions<T>): Handle {
  let closed = false;
  let paused = false;
  let bound: T | undefined;

  const title = (): T | undefined => {
    if (!closed && (!bound || bound.closed)) {
      bound = o.find();
      if (bound) {
        bound.handles.add(handle);
        // A page that is about to rest, since all others have paused, does not.
        o.pausedChanged();
      }
    }
    return bound;
  };

  const handle: Handle = {
    manifest: o.manifest,
    get paused() {
      return paused;
    },
    get active() {
      return title()?.active ?? false;
    },
    get alone() {
      return title()?.alone ?? true;
    },
    load(request, onProgress = () => {}) {
      const now = title();
      if (now) return now.load(request, onProgress);
      const controller = new AbortController();
      return {
        result: fromOrigin(request, controller.signal, onProgress, () => 'policy'),
        abort: () => controller.abort(),
      };
    },
    bypass: (...transfer) => void title()?.bypass(...transfer),
    capacity: () => title()?.capacity(),
    observe: (delta) => title()?.observe(delta),
    setPaused(next) {
      if (paused === next) return;
      paused = next;
      o.pausedChanged();
    },
    close() {
      const last = bound;
      // Its last figures still count.
      last?.collect(handle);
      closed = true;
      bound = undefined;
      if (!last) return;
      last.handles.delete(handle);
      o.released(last);
    },
  };
  title();
  return handle;
}
