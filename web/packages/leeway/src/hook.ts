/** Finds players on the page, whether they are loaded before this script or after it. */

import type { Leeway } from '@leeway/core';
import { attachHlsClass, isHlsClass } from '@leeway/hlsjs';
import type { AttachShaka } from './load.ts';

export interface Hook {
  /** Whether a player has been found. */
  readonly found: boolean;
  undo(): void;
}

/** Has `take` see `scope[name]` now, and whatever is assigned to it later, once each. What it returns undoes what it did. */
function hook(
  leeway: Leeway,
  scope: Record<string, unknown>,
  name: string,
  take: (value: unknown) => (() => void) | undefined,
): Hook {
  const undone: (() => void)[] = [];
  const seen = new Set<unknown>();
  const look = (value: unknown) => {
    const undo = seen.has(value) ? undefined : take(value);
    if (!undo) return;
    seen.add(value);
    undone.push(undo);
  };

  let current = scope[name];
  look(current);
  const before = Object.getOwnPropertyDescriptor(scope, name);
  const shared = { configurable: true, enumerable: true };
  // A page may load a player late, or load it twice; an accessor that cannot be installed leaves what is there.
  if (!before || before.configurable) {
    Object.defineProperty(scope, name, {
      ...shared,
      get: () => current,
      set: (value: unknown) => {
        current = value;
        try {
          look(value);
        } catch (error) {
          leeway.caught('hook', error);
        }
      },
    });
    undone.push(() => {
      if (before || current !== undefined)
        Object.defineProperty(scope, name, { ...shared, writable: true, value: current });
      else delete scope[name];
    });
  }
  return {
    get found() {
      return seen.size > 0;
    },
    undo() {
      for (const f of undone.splice(0)) f();
    },
  };
}

/** Attaches `scope.Hls` now, and whatever is assigned to it later. */
export const hookHls = (leeway: Leeway, scope: Record<string, unknown>): Hook =>
  hook(leeway, scope, 'Hls', (value) => (isHlsClass(value) ? attachHlsClass(leeway, value) : undefined));

/** Loads the adapter of Shaka where a page has that player, and attaches it. Players play as without Leeway until it is there. */
export const hookShaka = (leeway: Leeway, scope: Record<string, unknown>, load: () => Promise<AttachShaka>): Hook =>
  hook(leeway, scope, 'shaka', (value) => {
    const shaka = value as Parameters<AttachShaka>[1] | undefined;
    if (!shaka?.Player) return undefined;
    let undone = false;
    let detach: (() => void) | undefined;
    load()
      .then((attach) => {
        if (!undone) detach = attach(leeway, shaka);
      })
      .catch((error) =>
        leeway.notice({
          code: 'engine-missing',
          message: `Leeway's script for Shaka Player does not load, or not take this player. ${error?.message ?? ''}`,
          hint: 'Shaka 5 is needed. Serve the script beside the first; allow it in script-src.',
        }),
      );
    return () => {
      undone = true;
      detach?.();
    };
  });
