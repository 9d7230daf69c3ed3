/** Finds hls.js on the page, whether it is loaded before this script or after it. */

import type { Leeway } from '@leeway/core';
import { attachHlsClass, isHlsClass } from '@leeway/hlsjs';

export interface Hook {
  /** Whether an hls.js class has been found. */
  readonly found: boolean;
  undo(): void;
}

/** Attaches `scope.Hls` now, and whatever is assigned to it later. */
export function hookHls(leeway: Leeway, scope: Record<string, unknown>): Hook {
  const undone: (() => void)[] = [];
  const seen = new Set<unknown>();
  const take = (value: unknown) => {
    if (!isHlsClass(value) || seen.has(value)) return;
    seen.add(value);
    undone.push(attachHlsClass(leeway, value));
  };

  let current = scope.Hls;
  take(current);
  const before = Object.getOwnPropertyDescriptor(scope, 'Hls');
  // A page may load hls.js late, or load it twice; an accessor that cannot be installed leaves what is there.
  if (!before || before.configurable) {
    Object.defineProperty(scope, 'Hls', {
      configurable: true,
      enumerable: true,
      get: () => current,
      set: (value: unknown) => {
        current = value;
        try {
          take(value);
        } catch (error) {
          leeway.caught('hook', error);
        }
      },
    });
    undone.push(() => {
      if (before || current !== undefined) {
        Object.defineProperty(scope, 'Hls', { configurable: true, enumerable: true, writable: true, value: current });
      } else {
        delete scope.Hls;
      }
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
