/** Timers by name: setting one again stops the one before. */

import type { Clock } from '../ports.ts';

export interface Timers<Name extends string> {
  set(name: Name, f: () => void, ms: number): void;
  /** Whether it has yet to go off. */
  isSet(name: Name): boolean;
  clear(...names: Name[]): void;
  clearAll(): void;
}

export const createTimers = <Name extends string>(
  clock: Clock,
  caught: (where: string, error: unknown) => void,
): Timers<Name> => {
  const running = new Map<Name, number>();
  const clear = (...names: Name[]) => {
    for (const name of names) {
      clock.clearTimer(running.get(name) ?? 0);
      running.delete(name);
    }
  };
  return {
    set(name, f, ms) {
      clear(name);
      const timer = clock.setTimer(() => {
        running.delete(name);
        try {
          f();
        } catch (error) {
          caught(name, error);
        }
      }, ms);
      running.set(name, timer);
    },
    isSet: (name) => running.has(name),
    clear,
    clearAll: () => clear(...running.keys()),
  };
};
