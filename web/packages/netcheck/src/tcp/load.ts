/** The program that makes the load: parallel WebSockets of ndt7 (spec/probe.md, ndt7). */
import type { Scope } from '../browser/background.ts';

export interface LoadTask {
  direction: 'down' | 'up';
  /** One WebSocket each. */
  urls: string[];
  /** µs after which it ends by itself. */
  length: number;
  /** Questions to the server on the WebSockets, from so many µs on, so many ms apart (spec/probe.md, Answers). */
  asks?: { after: number; every: number };
}

/** Times are microseconds since the first WebSocket opened. */
export type LoadEvent =
  | { is: 'open'; socket: number; at: number }
  /** What a WebSocket has received, and when the last of it came. */
  | { is: 'received'; socket: number; at: number; bytes: number }
  /** A text of the server. */
  | { is: 'measured'; socket: number; at: number; text: string }
  /** How long the answer to a question took, µs. */
  | { is: 'responded'; took: number }
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
  const short = 25; // ms that a message takes at most by the mean rate: a question waits for those before it
  const sockets: WebSocket[] = [];
  let zero = -1;
  let length = 0;
  let asked = 0;
  let beat = 0;
  const asking: (() => boolean)[] = []; // of each WebSocket; false: it cannot now
  const at = () => Math.round((performance.now() - zero) * 1000);

  const fill = (): Uint8Array<ArrayBuffer> => {
    const all = new Uint8Array(largest);
    for (let i = 0; i < largest; i += 65_536) crypto.getRandomValues(all.subarray(i, i + 65_536));
    return all;
  };

  /** Sends without end. What `held` says waits until nothing waits in the browser: then its time is the line's alone. */
  const push = (socket: WebSocket, random: Uint8Array<ArrayBuffer>, held: () => (() => void) | undefined) => {
    const began = performance.now();
    let size = smallest;
    let sent = 0;
    const turn = () => {
      if (socket.readyState !== 1) return;
      const question = held();
      if (question && socket.bufferedAmount === 0) question();
      while (!held() && socket.bufferedAmount < buffered * size) {
        socket.send(random.subarray(0, size));
        sent += size;
        const gone = sent - socket.bufferedAmount;
        if (size < largest && size <= gone / 16) size *= 2;
        const most = (gone * short) / Math.max(short, performance.now() - began);
        size = Math.min(size, Math.max(smallest, Math.floor(most)));
      }
      setTimeout(turn, 1);
    };
    turn();
  };

  /** Has one of the WebSockets ask, any that can. */
  const ask = () => {
    const first = Math.floor(Math.random() * asking.length);
    for (let i = 0; i < asking.length; i++) if (asking[(first + i) % asking.length]!()) return;
  };

  const end = () => {
    clearInterval(beat);
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
    let wants = false; // to ask, once nothing waits before the question
    let since = 0; // the question was sent, ms; 0: none waits for its answer
    const question = () => {
      wants = false;
      since = performance.now();
      s.send(`{"Ask":${asked++}}`);
    };
    asking.push(() => {
      if (s.readyState !== 1 || wants || since > 0) return false;
      if (random) wants = true;
      else question();
      return true;
    });
    s.binaryType = 'arraybuffer';
    s.onopen = () => {
      if (zero < 0) zero = performance.now();
      scope.postMessage({ is: 'open', socket, at: at() });
      if (random) push(s, random, () => (wants ? question : undefined));
    };
    s.onmessage = ({ data }) => {
      if (typeof data !== 'string') {
        bytes += data.byteLength;
        const now = at();
        if (now - told < apart && told > 0) return; // a timer would wait while messages come
        told = now;
        scope.postMessage({ is: 'received', socket, at: now, bytes });
        if (now >= length) end();
      } else if (since > 0 && data.startsWith('{"Answer":')) {
        scope.postMessage({ is: 'responded', took: Math.round((performance.now() - since) * 1000) });
        since = 0;
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
    const { asks } = task;
    if (asks) {
      beat = setInterval(() => {
        if (zero >= 0 && at() >= asks.after) ask();
      }, asks.every) as unknown as number;
    }
    const random = task.direction === 'up' ? fill() : undefined;
    task.urls.forEach((url, n) => {
      open(url, n, random);
    });
  };
}
