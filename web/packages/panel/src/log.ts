import type { Leeway } from '@leeway/core';

/** Logs what happens, for `data-debug`. */
export function logEvents(leeway: Leeway, log: (...words: unknown[]) => void): void {
  log('state', { state: leeway.state });
  for (const event of ['state', 'joined', 'segment', 'link', 'unlink', 'off'] as const)
    leeway.on(event, (detail) => log(event, detail));
}
