/**
 * Bytes of media that a title keeps in memory: 16 MiB for each GiB of the device, at least 16 and at most 64. Chromium alone says what the
 * device has, in steps; another browser counts as one with 4.
 */
export const cacheBytes = (): number =>
  Math.min(64, 16 * Math.max(1, (navigator as { deviceMemory?: number }).deviceMemory ?? 4)) * 2 ** 20;
