/** A server of the check as a page sees it, by fetch and WebSocket, in time that tests set. */
import { vi } from 'vitest';

export interface Behavior {
  /** bit/s of each WebSocket. */
  rate: number;
  /** ms after which it says nothing more on WebSockets. */
  silentAfter: number;
  /** Close code at this time, ms. */
  closes: { code: number; at: number } | undefined;
  /** WebSockets that open; those made after them never do, nor close. */
  opens: number;
  /** fetch answers. */
  answers: boolean;
  /** ms after which a question on a WebSocket is answered; undefined: it is not. */
  responds: number | undefined;
  /** Status of a request that counts as a test. */
  status: number;
  retryAfter: string;
  /** STUN servers that it names. */
  stun: unknown;
  /** What it says of the client's address. */
  client: string;
  /** The tests that it has. */
  tests: string[];
  /** What it sends as measurements. */
  measures(direction: string, elapsed: number, bytes: number): string;
}

const step = 50; // ms

const usual: Behavior = {
  rate: 20e6,
  silentAfter: Number.POSITIVE_INFINITY,
  closes: { code: 1000, at: 10_000 },
  opens: Number.POSITIVE_INFINITY,
  answers: true,
  responds: undefined,
  status: 200,
  retryAfter: '',
  stun: undefined,
  client: '192.0.2.7',
  tests: ['ndt7', 'http'],
  measures: (direction, elapsed, bytes) =>
    JSON.stringify({
      AppInfo: { ElapsedTime: elapsed, NumBytes: bytes },
      ConnectionInfo: { Client: '192.0.2.7:40000', Server: '192.0.2.1:8090' },
      Origin: 'server',
      Test: direction,
      TCPInfo: { ElapsedTime: elapsed, MinRTT: 10_000, RTT: 30_000, RcvRTT: 25_000, SndMSS: 1448, Options: 1 },
    }),
};

/** Puts the globals of a page in place: a server that behaves so. */
export function serve(changes: Partial<Behavior> = {}) {
  const behavior = { ...usual, ...changes };
  const sockets: Socket[] = [];
  const asked: string[] = [];
  const waited: number[] = []; // bytes in the browser before each question

  class Socket {
    readyState = 0;
    bufferedAmount = 0;
    binaryType = 'blob';
    onopen: (() => void) | null = null;
    onmessage: ((event: { data: unknown }) => void) | null = null;
    onclose: ((event: { code: number }) => void) | null = null;
    readonly direction: string;
    private readonly beats: ReturnType<typeof setInterval>[] = [];
    private elapsed = 0;
    private bytes = 0;
    private below = 0; // what the system has of the browser, bytes

    constructor(
      readonly url: string,
      readonly protocol: string,
    ) {
      this.direction = new URL(url).pathname.split('/').at(-1)!;
      sockets.push(this);
      if (sockets.length > behavior.opens) return;
      setTimeout(() => {
        if (this.readyState !== 0) return;
        this.readyState = 1;
        this.onopen?.();
        this.beats.push(
          setInterval(() => this.carry(), step),
          setInterval(() => this.measure(), 250),
        );
      }, 40);
    }

    private carry(): void {
      this.elapsed += step;
      if (behavior.closes && this.elapsed >= behavior.closes.at) {
        this.end(behavior.closes.code);
        return;
      }
      if (this.elapsed > behavior.silentAfter) return;
      const share = (behavior.rate * step) / 8000;
      if (this.direction === 'download') {
        this.bytes += share;
        this.onmessage?.({ data: new ArrayBuffer(share) });
        return;
      }
      const left = Math.min(share, this.below);
      this.bytes += left;
      this.below -= left;
      const taken = Math.min(this.bufferedAmount, 2 * share - this.below);
      this.below += taken;
      this.bufferedAmount -= taken;
    }

    private measure(): void {
      if (this.elapsed > behavior.silentAfter) return;
      this.onmessage?.({ data: behavior.measures(this.direction, this.elapsed * 1000, this.bytes) });
    }

    private end(code: number): void {
      for (const beat of this.beats) clearInterval(beat);
      if (this.readyState === 3) return;
      this.readyState = 3;
      this.onclose?.({ code });
    }

    send(data: Uint8Array | string): void {
      if (typeof data !== 'string') {
        this.bufferedAmount += data.byteLength;
        return;
      }
      waited.push(this.bufferedAmount);
      const answer = data.replace('Ask', 'Answer');
      if (behavior.responds === undefined || !this.url.includes('answers=1')) return;
      setTimeout(() => this.readyState === 1 && this.onmessage?.({ data: answer }), behavior.responds);
    }

    close(code = 1005): void {
      this.end(code);
    }
  }

  const fetch = (input: string | URL, { signal }: { signal: AbortSignal }) => {
    const { pathname, href } = new URL(input);
    asked.push(href);
    return new Promise<Response>((resolve, reject) => {
      if (signal.aborted) return reject(new DOMException('aborted', 'AbortError'));
      const stop = () => reject(new DOMException('aborted', 'AbortError'));
      signal.addEventListener('abort', stop);
      if (!behavior.answers) return;
      const answer = pathname.endsWith('/info')
        ? new Response(
            JSON.stringify({ version: '1', client: behavior.client, tests: behavior.tests, stun: behavior.stun }),
          )
        : new Response('{"type": "answer", "sdp": "v=0"}', {
            status: pathname.endsWith('/small') ? 200 : behavior.status,
            headers: { 'Retry-After': behavior.retryAfter },
          });
      setTimeout(() => {
        signal.removeEventListener('abort', stop);
        resolve(answer);
      }, 12);
    });
  };

  vi.stubGlobal('WebSocket', Socket);
  vi.stubGlobal('fetch', fetch);
  // Its entries of this program's requests: 12 ms each, and a connection of 11 ms.
  vi.stubGlobal(
    'PerformanceObserver',
    class {
      private beat: ReturnType<typeof setInterval> | undefined;
      constructor(readonly hear: (list: { getEntries(): object[] }) => void) {}
      observe(): void {
        let told = asked.length;
        this.beat = setInterval(() => {
          const entries = asked.slice(told).map((name) => ({
            ...{ name, connectStart: 100, secureConnectionStart: 0, connectEnd: 111 },
            ...{ requestStart: 111, responseStart: 123 },
          }));
          told = asked.length;
          if (entries.length > 0) this.hear({ getEntries: () => entries });
        }, 50);
      }
      disconnect(): void {
        clearInterval(this.beat);
      }
    },
  );
  return { sockets, asked, waited };
}
