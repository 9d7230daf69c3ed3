/** What Leeway does on a page, shown: `showBadge(leeway)` for viewers, `showDebug(leeway)` for developers. */

export { type BadgeOptions, showBadge } from './badge.ts';
export { showDebug } from './debug.ts';
export { isSwitchedOff } from './memory.ts';
