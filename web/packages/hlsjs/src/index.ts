/** Leeway for hls.js: `attachHls(leeway, hls)`. */

export { type AttachOptions, attachHls, attachHlsClass, isHlsClass } from './attach.ts';
export type { HlsClass, HlsPlayer } from './hls.ts';
