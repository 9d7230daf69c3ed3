/** The viewer's switch. While it is off, the browser remembers that; while it is on, nothing is stored. */

const key = 'leeway';
/** A page without storage remembers it until it goes. */
let isOff = false;

/** Whether the viewer has switched peer delivery off on this site. */
export function isSwitchedOff(): boolean {
  try {
    return isOff || localStorage.getItem(key) === 'off';
  } catch {
    return false;
  }
}

export function remember(off: boolean): void {
  isOff = off;
  try {
    if (off) localStorage.setItem(key, 'off');
    else localStorage.removeItem(key);
  } catch {}
}
