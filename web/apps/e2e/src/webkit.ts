import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './service.ts';

/** Where Debian has the smallest browser of WebKitGTK, which its driver drives. */
const miniBrowsers = ['webkit2gtk-4.1', 'webkit2gtk-4.0', 'webkitgtk-6.0'].map(
  (folder) => `/usr/lib/${triplet()}/${folder}/MiniBrowser`,
);

function triplet(): string {
  return { x64: 'x86_64-linux-gnu', arm64: 'aarch64-linux-gnu' }[process.arch as string] ?? process.arch;
}

const has = (command: string): boolean => {
  try {
    execFileSync('sh', ['-c', `command -v ${command}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};

/** What keeps WebKitGTK from running here, a sentence; undefined: nothing. */
export function webkitMissing(): string | undefined {
  const missing = ['WebKitWebDriver', 'Xvfb'].filter((command) => !has(command));
  return missing.length > 0
    ? `${missing.join(' and ')} is missing (apt-get install webkit2gtk-driver xvfb gstreamer1.0-libav gstreamer1.0-plugins-bad)`
    : undefined;
}

/** One WebKitGTK with one window, on a screen of its own, driven by WebDriver as the W3C has it. */
export class WebKit {
  private session = '';

  private constructor(
    private readonly base: string,
    private readonly children: ChildProcess[],
    private readonly home: string,
  ) {}

  static async start(): Promise<WebKit> {
    const home = mkdtempSync(join(tmpdir(), 'leeway-e2e-webkit-'));
    const screen = spawn('Xvfb', ['-displayfd', '3', '-screen', '0', '1280x800x24', '-nolisten', 'tcp'], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    });
    const display = await new Promise<string>((resolve, reject) => {
      screen.stdio[3]!.once('data', (data: Buffer) => resolve(`:${data.toString().trim()}`));
      screen.once('exit', (code) => reject(new Error(`e2e: Xvfb ended with ${code}`)));
    });
    const port = await freePort();
    const env = {
      ...process.env,
      DISPLAY: display,
      HOME: home,
      XDG_CACHE_HOME: home,
      XDG_RUNTIME_DIR: home,
      GDK_BACKEND: 'x11',
      GSETTINGS_BACKEND: 'memory',
      NO_AT_BRIDGE: '1',
      LIBGL_ALWAYS_SOFTWARE: '1',
      WEBKIT_DISABLE_DMABUF_RENDERER: '1', // there is no GPU
    };
    const driver = spawn('WebKitWebDriver', ['--host=127.0.0.1', `--port=${port}`], { stdio: 'ignore', env });
    const webkit = new WebKit(`http://127.0.0.1:${port}`, [driver, screen], home);
    try {
      await webkit.open();
    } catch (error) {
      await webkit.stop();
      throw error;
    }
    return webkit;
  }

  private async open(): Promise<void> {
    const binary = miniBrowsers.find(existsSync);
    const browserOptions = { binary, args: ['--automation'] };
    const capabilities = { alwaysMatch: { 'webkitgtk:browserOptions': browserOptions } };
    const deadline = Date.now() + 20_000;
    for (;;) {
      try {
        const { sessionId } = await this.ask<{ sessionId: string }>('POST', '/session', { capabilities });
        this.session = `/session/${sessionId}`;
        return;
      } catch (error) {
        // The driver does not listen yet.
        if (!(error instanceof TypeError) || Date.now() > deadline) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  }

  private async ask<T>(method: string, path: string, body?: object): Promise<T> {
    const answer = await fetch(this.base + path, { method, body: body && JSON.stringify(body) });
    const { value } = (await answer.json()) as { value: T & { error?: string; message?: string } };
    if (!answer.ok) throw new Error(`e2e: WebKitGTK: ${path}: ${value.error}: ${value.message}`);
    return value;
  }

  async goto(url: string): Promise<void> {
    await this.ask('POST', `${this.session}/url`, { url });
  }

  /** Runs a function in the page; it uses nothing from outside, and may answer a promise. */
  evaluate<T>(f: () => T | Promise<T>): Promise<T> {
    const script = `return (${f})()`;
    return this.ask('POST', `${this.session}/execute/sync`, { script, args: [] });
  }

  async stop(): Promise<void> {
    if (this.session) await this.ask('DELETE', this.session).catch(() => {});
    for (const child of this.children) {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      if (child.exitCode === null && child.kill()) await ended;
    }
    rmSync(this.home, { recursive: true, force: true, maxRetries: 3 });
  }
}
