/** Leeway for files: `fetchFile(leeway, url, options)`. */

export { type FileOptions, type FileRange, fetchFile } from './file.ts';
export type { FilePriority } from './job.ts';
