import type { Viewer } from './viewer.ts';

/** A media response as the page's hls.js was given it, from whatever source. */
export interface Given {
  path: string;
  digest: string;
}

interface RecorderWindow {
  __given?: Promise<Given>[];
  // biome-ignore lint/suspicious/noExplicitAny: the page's hls.js
  Hls?: any;
}

/**
 * Runs in the page before any of its scripts: has every player of hls.js tell what it is given. It looks for the class again and again,
 * since an accessor of `window` would be in the library's way.
 */
export function recordGiven(): void {
  const page = window as unknown as RecorderWindow;
  const all: Promise<Given>[] = [];
  page.__given = all;
  const hex = (buffer: ArrayBuffer) =>
    Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, '0')).join('');
  const record = (url: string, data: ArrayBuffer) => {
    const { pathname } = new URL(url, location.href);
    all.push(crypto.subtle.digest('SHA-256', data.slice(0)).then((d) => ({ path: pathname, digest: hex(d) })));
  };
  // biome-ignore lint/suspicious/noExplicitAny: a player of hls.js
  const watch = (hls: any) => {
    const { config } = hls;
    let current = config.fLoader;
    const made = new Map();
    // The outermost loader sees what the player is given. The library may come before it or after it.
    const outermost = () => {
      const Inner = current ?? config.loader;
      // biome-ignore lint/suspicious/noExplicitAny: hls.js loader types
      function Recorder(loaderConfig: any) {
        const inner = new Inner(loaderConfig);
        if (outermost() !== Recorder) return inner; // the library has wrapped this one
        const load = inner.load.bind(inner);
        // biome-ignore lint/suspicious/noExplicitAny: hls.js loader types
        inner.load = (context: any, settings: any, callbacks: any) => {
          const whole = !context.rangeEnd;
          // biome-ignore lint/suspicious/noExplicitAny: hls.js loader types
          const onSuccess = (response: any, ...rest: unknown[]) => {
            if (whole) record(context.url, response.data);
            callbacks.onSuccess(response, ...rest);
          };
          load(context, settings, { ...callbacks, onSuccess });
        };
        return inner;
      }
      if (!made.has(Inner)) made.set(Inner, Recorder);
      return made.get(Inner);
    };
    Object.defineProperty(config, 'fLoader', {
      configurable: true,
      enumerable: true,
      get: outermost,
      set(loader) {
        current = loader;
      },
    });
  };
  const known = new WeakSet();
  const timer = setInterval(() => {
    const { Hls } = page;
    if (Hls === undefined) return;
    clearInterval(timer);
    const { trigger } = Hls.prototype;
    Hls.prototype.trigger = function (...event: unknown[]) {
      if (!known.has(this)) {
        known.add(this);
        watch(this);
      }
      return trigger.apply(this, event);
    };
  }, 1);
}

/** What the page's player was given so far. */
export function given(viewer: Viewer): Promise<Given[]> {
  return viewer.page.evaluate(() => Promise.all((window as unknown as RecorderWindow).__given ?? []));
}
