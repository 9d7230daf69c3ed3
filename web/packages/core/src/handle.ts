/** A player's hold on a title. Titles come and go with consent and restarts; the player keeps its handle. */

import { fromOrigin, type Handle } from './playback.ts';
import type { Title } from './title.ts';

export interface HandleOptions {
  manifest: string;
  /** The title as it stands; undefined while there is no session to have one. */
  find(): Title | undefined;
  released(title: Title): void;
  pausedChanged(): void;
}

export function createHandle(o: HandleOptions): Handle {
  let closed = false;
  let paused = false;
  let bound: Title | undefined;

  const title = (): Title | undefined => {
    if (!closed && (!bound || bound.closed)) {
      bound = o.find();
      bound?.handles.add(handle);
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
