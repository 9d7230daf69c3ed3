/** What Leeway does on a page, shown: `showBadge(leeway)` for viewers, `showDebug(leeway)` and `examine(leeway, options)` for developers. */

export { type BadgeOptions, showBadge } from './badge.ts';
export { showDebug } from './debug.ts';
export type { DoctorOptions } from './doctor/examination.ts';
export { examine } from './doctor/examine.ts';
export type { Finding, FindingStatus } from './doctor/finding.ts';
export { isSwitchedOff } from './memory.ts';
