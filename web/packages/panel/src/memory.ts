/** The viewer's switch. While it is off, the browser remembers that; while it is on, nothing is stored. */

const key = 'leeway';

/** Whether the viewer has switched peer delivery off on this site. */
export function isSwitchedOff(): boolean {
  try {
    return localStorage.getItem(key) === 'off';
  } catch {
    return false; // a page without storage forgets it
  }
}

export function remember(off: boolean): void {
  try {
    if (off) localStorage.setItem(key, 'off');
    else localStorage.removeItem(key);
  } catch {}
}
