/** The engine's script: asked for once, and again after a while where it did not come. */

import type { CreateEngine, Script } from './options.ts';

/** How long after it did not come it is tried again; twice as long each time. */
const retryMs = 10_000;

export const createScript = (load: () => Promise<CreateEngine>): Script => {
  let coming: Promise<CreateEngine> | undefined;
  let missed = 0;
  const need = () => {
    coming ??= load();
    return coming;
  };
  return {
    fetch: () => void need().catch(() => {}),
    need,
    failed() {
      coming = undefined;
      return retryMs * 2 ** missed++;
    },
  };
};
