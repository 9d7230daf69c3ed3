/** A page made of fakes, for the drop-in's scripts as they go out. */

import { webcrypto } from 'node:crypto';
import { runInNewContext } from 'node:vm';
import { scripts } from '../build.mjs';

export interface Element {
  src: string;
  integrity: string;
  crossOrigin: string;
  nonce: string;
  onerror(): void;
  onload(): void;
}

export const built: ReturnType<typeof scripts> = scripts();

const own = 'https://video.example.com/static/leeway.js';

export class Page {
  /** Script elements that were put into the page. */
  readonly elements: Element[] = [];
  /** Those that were taken out again. */
  readonly removed: Element[] = [];
  readonly sent: Record<string, unknown>[] = [];
  readonly hlsListeners = new Map<string, (event: string, data: unknown) => void>();
  readonly mediaListeners = new Map<string, (event: { type: string }) => void>();
  readonly windowListeners: string[] = [];
  readonly timers: { f: () => void; ms?: number }[] = [];
  readonly window: Record<string, unknown>;
  socket: { onopen(): void; onmessage(event: { data: string }): void } | undefined;

  constructor() {
    const page = this;
    class WebSocket {
      static OPEN = 1;
      readyState = 1;
      constructor() {
        page.socket = this as never;
      }
      send(text: string) {
        page.sent.push(JSON.parse(text));
      }
      close() {}
    }
    const listen = (names: string[]) => (name: string) => void names.push(name);
    this.window = {
      document: {
        currentScript: { dataset: { tracker: 'wss://t.example.com', site: 'demo' }, src: own, nonce: 'abc' },
        createElement: () => ({
          remove(this: Element) {
            page.removed.push(this);
          },
        }),
        head: { append: (element: Element) => void this.elements.push(element) },
        readyState: 'complete',
        visibilityState: 'visible',
        addEventListener: listen(this.windowListeners),
        removeEventListener: () => {},
      },
      location: { hostname: 'video.example.com' },
      navigator: { connection: { saveData: true, addEventListener: () => {} }, userAgentData: { mobile: false } },
      performance: { now: () => performance.now() },
      crypto: webcrypto,
      isSecureContext: true,
      RTCPeerConnection: class {
        close() {}
      },
      WebSocket,
      AbortController,
      TextEncoder,
      URL,
      atob,
      btoa,
      console: { info: () => {} },
      setTimeout: (f: () => void, ms?: number) => this.timers.push({ f, ms }),
      queueMicrotask,
      clearTimeout: () => {},
      addEventListener: listen(this.windowListeners),
      removeEventListener: () => {},
    };
    this.window.window = this.window;
  }

  /** The element's script has come. */
  run(element: Element, code: string) {
    (this.window.document as { currentScript: unknown }).currentScript = element;
    runInNewContext(code, this.window);
    element.onload();
  }

  hls() {
    const page = this;
    const media = {
      addEventListener: (name: string, f: (event: { type: string }) => void) => page.mediaListeners.set(name, f),
      currentTime: 0,
      paused: true,
    };
    return class Hls {
      config: Record<string, unknown> = {
        loader: class {
          stats = { loading: { start: 0 } };
        },
      };
      levels = [];
      media: unknown = null;
      url = 'https://video.example.com/film/master.m3u8';
      on(event: string, f: (event: string, data: unknown) => void) {
        page.hlsListeners.set(event, f);
      }
      trigger(event: string) {
        page.hlsListeners.get(event)?.(event, {});
        return true;
      }
      start() {
        this.trigger('hlsManifestLoading');
        this.media = media;
        this.trigger('hlsMediaAttaching');
      }
    };
  }
}
