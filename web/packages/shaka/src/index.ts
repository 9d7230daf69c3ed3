/** Leeway for Shaka Player: `attachShaka(leeway, shaka, player)`. */

export { type AttachOptions, attachShaka, attachShakaClass } from './attach.ts';
export { isShaka, type ShakaNamespace, type ShakaPlayer } from './shaka.ts';
