/**
 * The players that the drop-in finds. A further one has a line here, its adapter in `src/parts/`, and the adapter's budget in
 * `parts.json`.
 */

import type { Leeway } from '@leeway/core';
import { attachHlsClass, isHlsClass } from '@leeway/hlsjs';
import { meet } from '../../dashjs/src/meet.ts';
import type { ShakaNamespace } from '../../shaka/src/shaka.ts';
import type { VideojsNamespace } from '../../videojs/src/videojs.ts';
import type { Attach, Part } from './load.ts';

export type Load = (part: Part) => Promise<unknown>;

/** Lets what a page has under a player's global share. Returns what undoes it; nothing where it is something else. */
export type Take = (leeway: Leeway, value: unknown, load: Load) => (() => void) | undefined;

/** By the global that the player's script defines. */
export const players: Record<string, Take> = {
  Hls: (leeway, value) => (isHlsClass(value) ? attachHlsClass(leeway, value) : undefined),
  shaka: adapted('shaka', (shaka: Partial<ShakaNamespace> | undefined) => shaka?.Player && shaka),
  videojs: adapted('videojs', (videojs: Partial<VideojsNamespace> | undefined) => videojs?.getAllPlayers && videojs),
  dashjs: adapted('dashjs', meet),
};

/**
 * A player whose adapter is a part. It is loaded where a page has that player; until then players play as without Leeway.
 * `meet` sees what the global is at once, and returns what the adapter is given: nothing where it is not the player.
 */
function adapted<V, T>(part: Part, meet: (value: V) => T | undefined): Take {
  return (leeway, value, load) => {
    const found = meet(value as V);
    if (!found) return undefined;
    let undone = false;
    // Until the adapter is there: dash.js would go on keeping each player for it.
    let detach = () => (found as { leave?(): void }).leave?.();
    // In a turn of its own. A request has the browser note the places of the calls that made it. For those of the player's script, which
    // runs as it gets its global, it would parse that script once more.
    Promise.resolve(part)
      .then(load)
      .then((attach) => {
        if (!undone) detach = (attach as Attach<T>)(leeway, found);
      })
      .catch((error) => {
        detach();
        leeway.notice({
          code: 'engine-missing',
          message: `The script for ${part} does not load, or not take this player. ${error?.message ?? ''}`,
          hint: 'Serve it beside the first; allow it in script-src.',
        });
      });
    return () => {
      undone = true;
      detach();
    };
  };
}
