/** The engine's script: asked for once, and again after a while where it did not come. */

import type { CreateEngine } from './options.ts';

/** How long after it did not come it is tried again; twice as long each time. */
const retryMs = 10_000;

export interface Script {
  /** Asks for it. What fails is seen when it is needed. */
  fetch(): void;
  /** What it makes engines with. Rejects where it does not come. */
  need(): Promise<CreateEngine>;
  /** It came. Says whether it had not before. */
  came(): boolean;
  /** It did not: the next that needs it asks again. */
  failed(): void;
  /** When to try that, ms. */
  againMs(): number;
}

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
    came() {
      const late = missed > 0;
      missed = 0;
      return late;
    },
    failed() {
      coming = undefined;
    },
    againMs: () => retryMs * 2 ** missed++,
  };
};
