/** Bytes as a person reads them: kB and MB of 1000, three digits. */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${Math.round(bytes)} B`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 'B';
  for (const next of units) {
    if (value < 999.5) break;
    value /= 1000;
    unit = next;
  }
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ${unit}`;
}

/** A rate in bytes per second as Mbit/s, or kbit/s below a tenth of it. */
export function formatRate(bytesPerSecond: number): string {
  const kbit = (bytesPerSecond * 8) / 1000;
  if (kbit < 100) return `${Math.round(kbit)} kbit/s`;
  return `${(kbit / 1000).toFixed(kbit < 9950 ? 1 : 0)} Mbit/s`;
}

/** Milliseconds as seconds: two decimals below ten seconds, one above. */
export function formatSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(ms < 9995 ? 2 : 1)} s`;
}

/** A place on the timeline, `m:ss` or `h:mm:ss`. */
export function formatClock(ms: number): string {
  const total = Math.max(0, Math.round(ms / 1000));
  const hours = Math.floor(total / 3600);
  const minutes = Math.floor(total / 60) % 60;
  const seconds = String(total % 60).padStart(2, '0');
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, '0')}:${seconds}` : `${minutes}:${seconds}`;
}

/** A ratio as whole percent. Never 100 unless it is all of it, never 0 unless it is nothing. */
export function percent(part: number, whole: number): number {
  if (whole <= 0 || part <= 0) return 0;
  if (part >= whole) return 100;
  return Math.min(99, Math.max(1, Math.round((100 * part) / whole)));
}
