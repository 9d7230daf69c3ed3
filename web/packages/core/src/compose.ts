/** Puts the engine together for a title: the one place where the facade knows what the engine is made of. */

import { type Background, createBackground } from './background/index.ts';
import { pageAlarm } from './browser/alarm.ts';
import { cacheBytes } from './browser/memory.ts';
import { onMoved } from './browser/moved.ts';
import { pageTabs } from './browser/tabs.ts';
import { createEngine } from './engine.ts';
import { loadDisk, loadSeldom } from './later.ts';
import { inspection } from './link/inspect.ts';
import type { CreateEngine } from './title/options.ts';

/** One for all titles of the page, since they share its line; and how many titles there are. */
let background: Background | undefined;
let engines = 0;

export const composeEngine: CreateEngine = (context, { clock, crypto }) => {
  engines++;
  return {
    ...createEngine({
      ...context,
      clock,
      crypto,
      onMoved,
      cacheBytes: cacheBytes(),
      loadSeldom,
      loadDisk,
      background() {
        background ??= createBackground({ clock, alarm: pageAlarm(clock), tabs: pageTabs });
        return background;
      },
      ended() {
        if (--engines) return;
        background?.stop();
        background = undefined;
      },
    }),
    ...inspection,
  };
};
