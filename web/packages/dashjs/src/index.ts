/** Leeway for dash.js: `attachDashjs(leeway, player)`. */

export { type AttachOptions, attachDashjs, attachDashjsClass } from './attach.ts';
export type { DashNamespace, DashPlayer } from './dashjs.ts';
