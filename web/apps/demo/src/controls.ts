import type { Film } from './film';

const license = { name: 'CC BY 3.0', url: 'https://creativecommons.org/licenses/by/3.0/' };

/** Writes the film's title and attribution, the license as a link to its text. */
export function showCredit(element: HTMLElement, film: Film): void {
  const title = document.createElement('cite');
  title.textContent = film.title;
  const [before, after] = film.attribution.split(license.name);
  element.replaceChildren(title, ` ${before ?? ''}`);
  if (after === undefined) return;
  const link = document.createElement('a');
  link.href = license.url;
  link.textContent = license.name;
  link.target = '_blank';
  link.rel = 'noopener license';
  element.append(link, after);
}

/**
 * Opens viewer number `viewer` in a window of its own, a quarter of the screen, so that none hides another: browsers slow
 * down what is hidden. Without an opener, so that it gets a process of its own. Returns its address.
 */
export function openViewer(viewer: number): string {
  const url = new URL(location.href);
  url.searchParams.set('viewer', String(viewer));
  const { availWidth, availHeight } = screen;
  const width = Math.max(520, Math.min(960, Math.floor(availWidth / 2)));
  const height = Math.max(440, Math.min(620, Math.floor(availHeight / 2)));
  const corner = (viewer - 1) % 4;
  const left = corner % 2 === 1 ? availWidth - width : 0;
  const top = corner >= 2 ? availHeight - height : 0;
  window.open(url, '_blank', `popup,noopener,width=${width},height=${height},left=${left},top=${top}`);
  return url.href;
}
