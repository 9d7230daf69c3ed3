/**
 * Runs `f` when the page has nothing else to do, and after a tenth of a second in any case: a player that starts has its first requests out
 * then, and waits for them. Safari has no such moment, and runs it in a turn of its own.
 */
export const idle = (f: () => void): void => {
  const { requestIdleCallback = (run: () => void, _?: object) => setTimeout(run) } = globalThis;
  requestIdleCallback(f, { timeout: 100 });
};
