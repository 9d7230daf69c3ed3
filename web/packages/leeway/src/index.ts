/** Leeway for npm: `createLeeway`, and `attachHls` for hls.js. */

export * from '@leeway/core';
export { type FileOptions, type FilePriority, type FileRange, fetchFile } from '@leeway/file';
export { type AttachOptions, attachHls, attachHlsClass, type HlsClass, type HlsPlayer } from '@leeway/hlsjs';
export {
  type BadgeOptions,
  type DoctorOptions,
  examine,
  type Finding,
  type FindingStatus,
  isSwitchedOff,
  showBadge,
  showDebug,
} from '@leeway/panel';
