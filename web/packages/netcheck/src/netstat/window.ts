/** The window of a connection (spec/probe.md, Window). */
import type { Direction } from './figures.ts';
import { rate, type TCPInfo } from './tcp.ts';

/** A window is a mean over looks: so many µs, and so many of them, at least. */
const windowTime = 1_000_000;
const windowLooks = 4;

const at = (look: TCPInfo) => look.ElapsedTime ?? 0;

/**
 * The largest window that looks at a connection saw in use for a second, in bytes. One look is no measure: a burst that was seen
 * is no window, and the kernel counts a receiver's round trip in whole milliseconds.
 */
export function inFlight(direction: Direction, looks: readonly TCPInfo[]): number {
  let most: number | undefined;
  looks.forEach((look, n) => {
    for (let k = n - windowLooks + 1; k >= 0; k--) {
      if (at(look) - at(looks[k]!) < windowTime) continue;
      most = Math.max(most ?? 0, used(direction, looks.slice(k, n + 1)));
      break;
    }
  });
  return most ?? used(direction, looks); // or a short test
}

/** The mean of the window in some looks: of what was under way, as the sender saw it; or by Little's law, rate by round trip. */
function used(direction: Direction, looks: readonly TCPInfo[]): number {
  const up = direction === 'up';
  const all = looks
    .map((look) => (up ? (look.RcvRTT ?? 0) : (look.Unacked ?? 0) * (look.SndMSS ?? 0)))
    .filter((v) => v > 0);
  if (all.length === 0) return 0;
  const mean = all.reduce((sum, v) => sum + v, 0) / all.length;
  if (!up) return mean;
  const [first, last] = [looks[0]!, looks.at(-1)!];
  const bytes = (last.BytesReceived ?? 0) - (first.BytesReceived ?? 0);
  return (rate(bytes, at(last) - at(first)) / 8e6) * mean;
}
