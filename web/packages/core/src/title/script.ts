/** The engine's script: asked for once, and again after a while where it did not come. */

import type { CreateEngine, Script } from './options.ts';

/** How long after it did not come it is tried again; twice as long each time, up to 640 s: timers hold no more than 2^31 ms. */
const retryMs = 10_000;
const mostDoublings = 6;

export const createScript = (load: () => Promise<CreateEngine>): Script => {
  let coming: Promise<CreateEngine> | undefined;
  let missed = -1;
  const need = () => {
    coming ??= load();
    return coming;
  };
  return {
    fetch: () => void need().catch(() => {}),
    need,
    failed() {
      // Every title that needed it hears of the same failure.
      if (coming) missed = Math.min(missed + 1, mostDoublings);
      coming = undefined;
      return retryMs * 2 ** missed;
    },
  };
};
