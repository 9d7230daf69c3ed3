import type { Alarm } from '../background/ports.ts';

/** The worker's whole program: a timer, which answers 0, and a clock that beats for a while when it is asked to by a time below 0. */
const ticking =
  'let t,b,n;onmessage=({data:d})=>{if(d<0){n=50;b||=setInterval(()=>{postMessage(performance.now());--n||(b=clearInterval(b))},10)}else{clearTimeout(t);t=setTimeout(postMessage,d,0)}}';

/** What a tick needs of the page; tests bring their own. */
export interface AlarmParts {
  now(): number;
  setTimer(f: () => void, ms: number): number;
  clearTimer(id: number): void;
  channel(): MessageChannel;
  /** A worker that runs the text, or an exception where the page's policy forbids it. */
  worker(text: string): Worker;
}

/**
 * An alarm that rings in hidden tabs as in visible ones: their own timers tick once a second, those of a worker do not.
 * Until the worker has shown that it runs, and where it is not allowed, the page's timers stand in.
 */
export function createAlarm(parts: AlarmParts): (f: () => void, heard?: (ms?: number) => void) => Alarm {
  return (f, heard) => {
    const { now, setTimer, clearTimer } = parts;
    const never = Number.POSITIVE_INFINITY;
    const { port1, port2 } = parts.channel();
    port1.onmessage = () => heard?.();
    let worker: Worker | undefined;
    let ticks = false;
    let at = never;
    let timer = 0;

    const start = () => {
      const ms = Math.max(0, Math.ceil(at - now()));
      if (ticks) worker?.postMessage(ms);
      else {
        clearTimer(timer);
        timer = setTimer(ring, ms);
      }
    };
    const ring = () => {
      if (at === never) return;
      at = never;
      f();
    };
    const stop = () => {
      at = never;
      clearTimer(timer);
      worker?.terminate();
      port1.close();
    };

    try {
      worker = parts.worker(ticking);
      worker.onmessage = ({ data }) => {
        if (data) return heard?.(data);
        if (ticks) return ring();
        // It runs: what the page's timer was to do is its own from here on.
        ticks = true;
        clearTimer(timer);
        if (at !== never) start();
      };
      worker.onerror = (e) => {
        e.preventDefault();
        worker?.terminate();
        worker = undefined;
        ticks = false;
        if (at !== never) start();
      };
      worker.postMessage(0);
    } catch {
      // The page's timers it is.
    }
    return {
      set(ms) {
        const then = now() + ms;
        if (then >= at) return;
        at = then;
        start();
      },
      beat: () => worker?.postMessage(-1),
      queue: () => port2.postMessage(0),
      stop,
    };
  };
}

/** The parts of this page. */
export const pageAlarm = (): ReturnType<typeof createAlarm> =>
  createAlarm({
    now: () => performance.now(),
    setTimer: (f, ms) => setTimeout(f, ms) as unknown as number,
    clearTimer: (id) => clearTimeout(id),
    channel: () => new MessageChannel(),
    worker(text) {
      const url = URL.createObjectURL(new Blob([text], { type: 'text/javascript' }));
      try {
        return new Worker(url);
      } finally {
        // The fetch has begun; the name is needed no longer.
        URL.revokeObjectURL(url);
      }
    },
  });
