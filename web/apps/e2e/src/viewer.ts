import type { ConsoleMessage, Page } from 'puppeteer-core';
import { instrument, type Seen } from './instrument.ts';
import type { PageWindow, Player, Told } from './watched.ts';

/** Bytes a viewer played or passed on, by source, as the library reports them. */
export interface Bytes {
  origin: number;
  seed: number;
  peer: number;
}

/** One viewer: a window of its own with the instrument in it. */
export class Viewer {
  readonly console: { type: string; text: string; at: number }[] = [];

  private constructor(
    readonly page: Page,
    readonly name: string,
  ) {}

  /** Opens `url` in a new window; `before` runs in the page ahead of its scripts. */
  static async open(
    browser: { window(): Promise<Page> },
    url: string,
    options: { name?: string; before?: string | (() => void) } = {},
  ): Promise<Viewer> {
    const page = await browser.window();
    const viewer = new Viewer(page, options.name ?? 'viewer');
    page.on('console', (message: ConsoleMessage) => {
      viewer.console.push({
        type: message.type(),
        text: [message.text(), message.location()?.url].filter(Boolean).join(' '),
        at: Date.now(),
      });
    });
    page.on('pageerror', (error: unknown) => {
      viewer.console.push({ type: 'error', text: `uncaught: ${String(error)}`, at: Date.now() });
    });
    await page.evaluateOnNewDocument(instrument);
    if (options.before) await page.evaluateOnNewDocument(options.before);
    await page.goto(url, { waitUntil: 'domcontentloaded' });
    return viewer;
  }

  seen(): Promise<Seen> {
    return this.page.evaluate(() => window.__seen!());
  }

  player(): Promise<Player> {
    return this.page.evaluate(() => (window as unknown as PageWindow).__player());
  }

  /** What the library told the page; the test page only. */
  told(): Promise<Told> {
    return this.page.evaluate(() => (window as unknown as PageWindow).__told);
  }

  /** The library's own figures; null where it is not there. */
  // biome-ignore lint/suspicious/noExplicitAny: the shape is the library's
  stats(): Promise<any> {
    return this.page.evaluate(() => (window as unknown as PageWindow).leeway?.stats?.() ?? null);
  }

  /** What the page may do, by the names of the permissions that this browser knows. */
  permissions(): Promise<Record<string, string>> {
    return this.page.evaluate(async () => {
      const names =
        'local-network loopback-network local-network-access geolocation camera microphone notifications persistent-storage ' +
        'storage-access midi clipboard-read clipboard-write window-management local-fonts idle-detection screen-wake-lock';
      const states: Record<string, string> = {};
      for (const name of names.split(' ')) {
        const known = await navigator.permissions.query({ name: name as PermissionName }).catch(() => undefined);
        if (known) states[name] = known.state;
      }
      return states;
    });
  }

  /** Errors of the library's own, which it counts and plays on behind. */
  async engineErrors(): Promise<number> {
    let errors = 0;
    for (const { engine } of (await this.stats())?.titles ?? []) errors += engine?.counters.errors ?? 0;
    return errors;
  }

  consoleErrors(): string[] {
    return this.console.filter((m) => m.type === 'error').map((m) => m.text);
  }

  /** Resolves when `test` holds for what was seen; rejects after `ms`. */
  async until(what: string, test: (seen: Seen) => boolean, ms = 30_000): Promise<Seen> {
    const deadline = Date.now() + ms;
    for (;;) {
      const seen = await this.seen();
      if (test(seen)) return seen;
      if (Date.now() > deadline) {
        throw new Error(
          `e2e: ${this.name}: ${what} not within ${ms} ms; console: ${JSON.stringify(this.console.slice(-10))}`,
        );
      }
      await pause(200);
    }
  }

  close(): Promise<void> {
    return this.page.close();
  }
}

/** Lets real time pass: a browser plays in real time, there is no clock to inject. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Waits until `test` holds; rejects after `ms`. */
export async function until(what: string, test: () => Promise<unknown>, ms = 45_000): Promise<void> {
  const deadline = Date.now() + ms;
  while (!(await test())) {
    if (Date.now() > deadline) throw new Error(`e2e: ${what} not within ${ms} ms`);
    await pause(250);
  }
}
