/** Counts what arrives, and the longest time in which nothing did. */
export function createMeter(now: () => number) {
  let bytes = 0;
  let last: number | undefined;
  let silence = 0;
  const look = (at: number) => {
    if (last !== undefined) silence = Math.max(silence, at - last);
  };
  return {
    add(n: number) {
      const at = now();
      look(at);
      last = at;
      bytes += n;
    },
    /** Bytes so far; ms of the longest silence since the first of them, one that lasts included. */
    read() {
      look(now());
      return { bytes, silence };
    },
  };
}
