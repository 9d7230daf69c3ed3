/** Finds a player on the page, whether it is loaded before this script or after it. */

import type { Leeway } from '@leeway/core';

export interface Hook {
  /** Whether a player has been found. */
  readonly found: boolean;
  undo(): void;
}

/** Has `take` see `scope[name]` now, and whatever is assigned to it later, once each. What it returns undoes what it did. */
export function hook(
  leeway: Leeway,
  scope: Record<string, unknown>,
  name: string,
  take: (value: unknown) => (() => void) | undefined,
): Hook {
  const undone: (() => void)[] = [];
  const seen = new Set<unknown>();
  const look = (value: unknown) => {
    try {
      const undo = seen.has(value) ? undefined : take(value);
      if (!undo) return;
      seen.add(value);
      undone.push(undo);
    } catch (error) {
      // Neither the page nor the look for other players is to notice.
      leeway.caught('hook', error);
    }
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
        look(value);
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
