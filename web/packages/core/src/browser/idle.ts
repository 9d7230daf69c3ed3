/** By then it runs whatever else the page does, ms. */
const timeout = 500;

/**
 * Runs `f` when the page has nothing else to do: a player that starts has its first requests out then, and waits for them. Safari has no
 * such moment, and runs it in a turn of its own.
 */
export const idle = (f: () => void): void => {
  if (typeof requestIdleCallback === 'undefined') setTimeout(f);
  else requestIdleCallback(f, { timeout });
};
