import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import puppeteer, { type Browser, type Page } from 'puppeteer-core';
import { firefox } from './paths.ts';

/** Beside those of puppeteer, which leaves media, WebRTC and timers as a user has them. */
const preferences = {
  'media.autoplay.default': 0, // a person has pressed play
  'media.volume_scale': '0.0',
};

/** One Firefox with a fresh profile, driven by WebDriver BiDi; every page is a window in a container of its own. */
export class Firefox {
  private constructor(
    private readonly browser: Browser,
    private readonly profile: string,
  ) {}

  static async start(more: Record<string, unknown> = {}): Promise<Firefox> {
    const profile = mkdtempSync(join(tmpdir(), 'leeway-e2e-'));
    const browser = await puppeteer.launch({
      browser: 'firefox',
      executablePath: firefox(),
      headless: true,
      acceptInsecureCerts: true, // pages at a public address have certificates of the suite's own
      defaultViewport: null,
      userDataDir: profile,
      extraPrefsFirefox: { ...preferences, ...more },
    });
    return new Firefox(browser, profile);
  }

  /** Opens an empty page in a browsing context of its own: each viewer has its own cache and storage, as people have. */
  async window(): Promise<Page> {
    const context = await this.browser.createBrowserContext();
    return await context.newPage();
  }

  version(): Promise<string> {
    return this.browser.version();
  }

  async stop(): Promise<void> {
    await this.browser.close();
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 3 });
  }
}
