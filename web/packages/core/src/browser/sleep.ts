/** Listens until the function that it answers is called; also for events that are the document's and do not bubble. */
export function listen(target: EventTarget, event: string, f: (event: Event) => void): () => void {
  target.addEventListener(event, f, true);
  return () => target.removeEventListener(event, f, true);
}

/** Calls when the page is put away for going back to, or frozen, or goes for good (true), and when it runs again (false). */
export function onSleep(f: (asleep: boolean) => void): () => void {
  let asleep = false;
  // Of a page that is put away Chromium says both.
  const ends = ['pagehide', 'freeze', 'pageshow', 'resume'].map((event, i) =>
    listen(window, event, () => {
      const was = asleep;
      asleep = i < 2;
      if (was !== asleep) f(asleep);
    }),
  );
  return () => {
    for (const end of ends) end();
  };
}
