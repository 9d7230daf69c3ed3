/** Figures as people read them. */

export function bytes(n: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let at = 0;
  for (; n >= 999.5 && at < units.length - 1; at++) n /= 1000;
  return `${at && n < 9.95 ? n.toFixed(1) : Math.round(n)} ${units[at]}`;
}

export const rate = (bytesPerSecond: number): string => (bytesPerSecond ? `${bytes(bytesPerSecond)}/s` : '–');

/** The last element of a URL's path, with its folder. */
export const tail = (url: string): string => url.split(/[?#]/)[0]!.split('/').slice(-2).join('/');

export const sum = (values: Iterable<number>): number => {
  let all = 0;
  for (const value of values) all += value;
  return all;
};
