import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import puppeteer, { type Browser, type CDPSession, type Page } from 'puppeteer-core';
import { chromium } from './paths.ts';

/**
 * Chromium with the flags of a user's browser: puppeteer's own defaults (no background throttling, no mDNS hiding …) are left out.
 * What is added only keeps it from talking to its maker (the machine's network is closed) and from drawing with a GPU
 * that is not there.
 */
const flags = [
  '--headless',
  '--no-sandbox',
  '--no-first-run',
  '--remote-debugging-pipe',
  '--mute-audio',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-quic',
];

/** One Chromium with a fresh profile; every page is a window of its own, since hidden tabs pause. */
export class Chromium {
  private constructor(
    private readonly browser: Browser,
    private readonly cdp: CDPSession,
    private readonly profile: string,
  ) {}

  static async start(extra: string[] = []): Promise<Chromium> {
    const profile = mkdtempSync(join(tmpdir(), 'leeway-e2e-'));
    const browser = await puppeteer.launch({
      executablePath: chromium(),
      ignoreDefaultArgs: true,
      pipe: true,
      defaultViewport: null,
      args: [...flags, `--user-data-dir=${profile}`, ...extra],
    });
    return new Chromium(browser, await browser.target().createCDPSession(), profile);
  }

  /** Opens an empty page in a window and a browser context of its own: each viewer has his own cache and storage, as people have. */
  async window(): Promise<Page> {
    const { browserContextId } = await this.cdp.send('Target.createBrowserContext', { disposeOnDetach: true });
    const { targetId } = await this.cdp.send('Target.createTarget', {
      url: 'about:blank',
      browserContextId,
      newWindow: true,
      width: 1280,
      height: 800,
    });
    const target = await this.browser.waitForTarget(
      (t) => (t as unknown as { _targetId: string })._targetId === targetId,
    );
    const page = await target.page();
    if (!page) throw new Error(`e2e: window ${targetId} has no page`);
    return page;
  }

  /** How often pages have asked for a permission. Where a user sees the page that is a prompt; here it is denied at once. */
  async permissionRequests(): Promise<number> {
    const { histograms } = await this.cdp.send('Browser.getHistograms', { query: 'Permissions.Request.' });
    return histograms.reduce((sum, { count }) => sum + count, 0);
  }

  /** Stops all of its processes, or has them go on, as a machine that sleeps. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    const children = new Map<number, number[]>();
    for (const pid of readdirSync('/proc').map(Number).filter(Boolean)) {
      const parent = parentOf(pid);
      children.set(parent, [...(children.get(parent) ?? []), pid]);
    }
    const send = (pid: number) => {
      try {
        process.kill(pid, name);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error; // it ended in the meantime
      }
      children.get(pid)?.forEach(send);
    };
    send(this.browser.process()!.pid!);
  }

  async stop(): Promise<void> {
    await this.browser.close();
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** 0: the process has just ended. */
function parentOf(pid: number): number {
  try {
    // After the command's name, which may hold anything: state and parent.
    return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')[1]);
  } catch {
    return 0;
  }
}
