/** The program that asks for small answers, for the time that they take (spec/probe.md, Responsiveness). */
import type { Scope } from '../browser/background.ts';

export interface ProbingTask {
  /** With a query, which gets a number for each. */
  url: string;
  /** Milliseconds from one to the next. */
  every: number;
}

/** Times are microseconds. */
export type ProbingEvent =
  /** What the browser says of a request; tcp and tls where it made a connection for it. */
  { is: 'timed'; tcp?: number; tls?: number; http: number } | { is: 'answered'; status: number } | { is: 'failed' };

/** Its text is a worker's program: nothing outside it is used. */
export function probing(scope: Scope<ProbingTask | undefined, ProbingEvent>): void {
  const most = 4; // requests at a time
  const end = new AbortController();
  let beat = 0;
  let asked = 0;
  let under = 0;
  let prefix = '';

  const us = (from: number, to: number) => Math.round((to - from) * 1000);
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries() as PerformanceResourceTiming[]) {
      if (!entry.name.startsWith(prefix) || entry.responseStart <= entry.requestStart || entry.requestStart <= 0)
        continue;
      const { connectStart, connectEnd, secureConnectionStart: secure } = entry;
      const made = connectEnd > connectStart;
      scope.postMessage({
        is: 'timed',
        ...(made && { tcp: us(connectStart, secure > 0 ? secure : connectEnd) }),
        ...(made && secure > 0 && { tls: us(secure, connectEnd) }),
        http: us(entry.requestStart, entry.responseStart),
      });
    }
  });

  const ask = async () => {
    if (under >= most) return;
    under++;
    try {
      const response = await fetch(prefix + asked++, { signal: end.signal, cache: 'no-store', credentials: 'omit' });
      await response.arrayBuffer();
      scope.postMessage({ is: 'answered', status: response.status });
    } catch {
      if (!end.signal.aborted) scope.postMessage({ is: 'failed' });
    }
    under--;
  };

  scope.onmessage = ({ data: task }) => {
    if (!task) {
      clearInterval(beat);
      observer.disconnect();
      end.abort();
      return;
    }
    prefix = `${task.url}&n=`;
    observer.observe({ type: 'resource' });
    beat = setInterval(ask, task.every) as unknown as number;
    void ask();
  };
}
