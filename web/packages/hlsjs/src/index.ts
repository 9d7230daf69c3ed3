/** Leeway for hls.js: `attachHls(leeway, hls)`. */

export { type AttachOptions, attachHls, attachHlsClass, isHlsClass } from './attach.ts';
