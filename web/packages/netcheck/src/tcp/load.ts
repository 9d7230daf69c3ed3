/** The program that makes the load: parallel WebSockets of ndt7 (spec/probe.md, ndt7). */
import type { Scope } from '../browser/background.ts';

export interface LoadTask {
  direction: 'down' | 'up';
  /** One WebSocket each. */
  urls: string[];
  /** µs after which it ends by itself. */
  length: number;
}

/** Times are microseconds since the first WebSocket opened. */
export type LoadEvent =
  | { is: 'open'; socket: number; at: number }
  /** What a WebSocket has received, and when the last of it came. */
  | { is: 'received'; socket: number; at: number; bytes: number }
  /** A text of the server. */
  | { is: 'measured'; socket: number; at: number; text: string }
  | { is: 'closed'; socket: number; at: number; code: number }
  /** Its time is over, or it was told to end, and all that came before has been said. */
  | { is: 'ended' };

/** Its text is a worker's program: nothing outside it is used. */
export function load(scope: Scope<LoadTask | undefined, LoadEvent>): void {
  const smallest = 8192;
  const largest = 1 << 20;
  const textLimit = 65_536;
  const textsLimit = 1000;
  const buffered = 8; // messages of a connection
  const apart = 50_000; // µs between two reports of a WebSocket
  const sockets: WebSocket[] = [];
  let zero = -1;
  let length = 0;
  const at = () => Math.round((performance.now() - zero) * 1000);

  const fill = (): Uint8Array<ArrayBuffer> => {
    const all = new Uint8Array(largest);
    for (let i = 0; i < largest; i += 65_536) crypto.getRandomValues(all.subarray(i, i + 65_536));
    return all;
  };

  const push = (socket: WebSocket, random: Uint8Array<ArrayBuffer>) => {
    let size = smallest;
    let sent = 0;
    const turn = () => {
      if (socket.readyState !== 1) return;
      while (socket.bufferedAmount < buffered * size) {
        socket.send(random.subarray(0, size));
        sent += size;
        if (size < largest && size <= (sent - socket.bufferedAmount) / 16) size *= 2;
      }
      setTimeout(turn, 1);
    };
    turn();
  };

  const end = () => {
    for (const s of sockets) {
      s.onmessage = s.onclose = null;
      s.close(1000);
    }
    scope.postMessage({ is: 'ended' });
  };

  const open = (url: string, socket: number, random: Uint8Array<ArrayBuffer> | undefined) => {
    let s: WebSocket;
    try {
      s = new WebSocket(url, 'net.measurementlab.ndt.v7');
    } catch {
      scope.postMessage({ is: 'closed', socket, at: 0, code: 1006 }); // the page's policy
      return;
    }
    let texts = 0;
    let bytes = 0;
    let told = 0;
    s.binaryType = 'arraybuffer';
    s.onopen = () => {
      if (zero < 0) zero = performance.now();
      scope.postMessage({ is: 'open', socket, at: at() });
      if (random) push(s, random);
    };
    s.onmessage = ({ data }) => {
      if (typeof data !== 'string') {
        bytes += data.byteLength;
        const now = at();
        if (now - told < apart && told > 0) return; // a timer would wait while messages come
        told = now;
        scope.postMessage({ is: 'received', socket, at: now, bytes });
        if (now >= length) end();
      } else if (data.length > textLimit || texts++ >= textsLimit) s.close(4000);
      else scope.postMessage({ is: 'measured', socket, at: at(), text: data });
    };
    s.onclose = ({ code }) => {
      scope.postMessage({ is: 'closed', socket, at: zero < 0 ? 0 : at(), code });
    };
    sockets.push(s);
  };

  scope.onmessage = ({ data: task }) => {
    if (!task) return end();
    length = task.length;
    const random = task.direction === 'up' ? fill() : undefined;
    task.urls.forEach((url, n) => {
      open(url, n, random);
    });
  };
}
