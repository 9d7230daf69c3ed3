import type { Alarm } from '../background/ports.ts';
import type { Clock } from '../ports.ts';

/**
 * The worker's whole program: a timer, which answers 0, and a clock that beats every so many ms for half a second when it
 * is asked to by a time below 0.
 */
const ticking =
  'let t,b,n;onmessage=({data:d})=>{if(d<0){n=-500/d;clearInterval(b);b=setInterval(()=>{--n>0||clearInterval(b);postMessage(performance.now())},-d)}else{clearTimeout(t);t=setTimeout(postMessage,d,0)}}';

/** What a tick needs of the page besides a clock; tests bring their own. */
export interface AlarmParts {
  channel(): MessageChannel;
  /** A worker that runs the text, or an exception where the page's policy forbids it. */
  worker(text: string): Worker;
}

/**
 * An alarm that rings in hidden tabs as in visible ones: their own timers tick once a second, those of a worker do not. A
 * page that is seen has its own timers do it, which takes no other thread, no message there and none back; until the worker
 * has shown that it runs, and where it is not allowed, so does a hidden one.
 */
export function createAlarm(
  { now, setTimer, clearTimer }: Pick<Clock, 'now' | 'setTimer' | 'clearTimer'>,
  parts: AlarmParts,
): (f: () => void, heard?: (ms?: number) => void) => Alarm {
  return (f, heard) => {
    const never = Number.POSITIVE_INFINITY;
    const { port1, port2 } = parts.channel();
    port1.onmessage = () => heard?.();
    let made: Worker | undefined;
    /** The same, once it has shown that it runs. */
    let worker: Worker | undefined;
    let at = never;
    /** The page's own, while it has not rung; 0: none. To clear one that has is a call into the browser for each message that is paced. */
    let timer = 0;

    const start = () => {
      if (at === never) return;
      const ms = Math.max(0, Math.ceil(at - now()));
      if (timer) clearTimer(timer);
      timer = 0;
      if (worker && document.hidden) worker.postMessage(ms);
      else timer = setTimer(rung, ms);
    };
    const rung = () => {
      timer = 0;
      ring();
    };
    const ring = () => {
      if (at === never) return;
      at = never;
      f();
    };

    try {
      made = parts.worker(ticking);
      made.onmessage = ({ data }) => {
        if (data) return heard?.(data);
        if (worker) return ring();
        // It runs: what the page's timer was to do is its own from here on.
        worker = made;
        start();
      };
      made.onerror = (e) => {
        e.preventDefault();
        made!.terminate();
        worker = undefined;
        start();
      };
      made.postMessage(0);
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
      beat: (ms) => worker?.postMessage(-ms),
      queue: () => port2.postMessage(0),
      stop() {
        at = never;
        clearTimer(timer);
        made?.terminate();
        port1.close();
      },
    };
  };
}

/** The parts of this page. */
export const pageAlarm = (clock: Clock): ReturnType<typeof createAlarm> =>
  createAlarm(clock, {
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
