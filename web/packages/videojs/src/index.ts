/** Leeway for Video.js: `attachVideojs(leeway, videojs, player)`. */

export { type AttachOptions, attachVideojs, attachVideojsAll } from './attach.ts';
export { isVideojs, type VideojsNamespace, type VideojsPlayer } from './videojs.ts';
