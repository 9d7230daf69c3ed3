/** The server's end of a load that gives way, at the other end of a line, in time that tests set. */
import { type BackgroundLink, createBackground } from '@leeway/core/lane';
import type { Load } from '../wire/control.ts';

/** Bytes a millisecond, and ms one way, of the line. */
export const lineRate = 1250;
const delay = 10;

const clock = {
  now: () => performance.now(),
  setTimer: (f: () => void, ms: number) => setTimeout(f, ms) as unknown as number,
  clearTimer: (id: number) => clearTimeout(id),
};

/** Calls f with what goes in, in turn, when it has passed a line. */
function pass(f: (data: ArrayBuffer) => void): (message: Uint8Array) => void {
  let free = 0;
  return (message) => {
    free = Math.max(free, performance.now()) + message.length / lineRate;
    const data = message.slice().buffer;
    setTimeout(() => f(data), free - performance.now() + delay);
  };
}

/** Serves one load. `down` hears what comes to the page; what it gives takes what the page sends. */
export function serveLoad({ direction }: Load, down: (data: ArrayBuffer) => void) {
  const background = createBackground({
    clock,
    alarm: (f) => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      let at = Number.POSITIVE_INFINITY;
      return {
        set(ms) {
          if (performance.now() + ms >= at) return;
          at = performance.now() + ms;
          clearTimeout(timer);
          timer = setTimeout(() => {
            at = Number.POSITIVE_INFINITY;
            f();
          }, Math.ceil(ms));
        },
        stop: () => clearTimeout(timer),
      };
    },
  });
  const out = pass(down);
  const link: BackgroundLink = {
    maxMessage: 16_384,
    waiting: () => 0,
    sendBackground(message) {
      out(message);
      return true;
    },
    sendAck: out,
  };
  const sends = direction === 'down';
  const payload = new Uint8Array(16_384);
  const lane = background.add(link, {
    waiting: () => sends,
    next: (most) => ({ request: 0, offset: 0, payload: payload.subarray(0, most) }),
  });
  const taken = pass((data) => {
    const message = new Uint8Array(data);
    if (sends) {
      if (!lane.ack(message)) throw new Error('the page sent no ack, or an impossible one');
    } else lane.data(message);
  });
  return { take: taken, stop: () => background.stop() };
}
