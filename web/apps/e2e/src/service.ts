import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { binary } from './paths.ts';

/** One `leeway` process. */
export class Service {
  readonly lines: string[] = [];
  private readonly exited: Promise<number | null>;

  private constructor(
    readonly name: string,
    private readonly child: ChildProcess,
  ) {
    let rest = '';
    const read = (chunk: Buffer) => {
      const parts = (rest + chunk.toString()).split('\n');
      rest = parts.pop()!;
      this.lines.push(...parts);
    };
    child.stdout!.on('data', read);
    child.stderr!.on('data', read);
    this.exited = new Promise((resolve) => child.once('exit', resolve));
  }

  /** Starts `leeway args…` and waits until `ready` answers 200. */
  static async start(args: string[], ready: string, ms = 30_000): Promise<Service> {
    const service = new Service(args[0]!, spawn(binary, args, { stdio: ['ignore', 'pipe', 'pipe'] }));
    const deadline = Date.now() + ms;
    for (;;) {
      if (service.child.exitCode !== null || Date.now() > deadline) {
        service.child.kill('SIGKILL');
        throw new Error(`e2e: leeway ${args.join(' ')} is not ready:\n${service.lines.slice(-20).join('\n')}`);
      }
      const ok = await fetch(ready)
        .then((r) => r.ok)
        .catch(() => false);
      if (ok) return service;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** Ends it as an operator would; answers the exit code. */
  async stop(): Promise<number | null> {
    if (this.child.exitCode === null) this.child.kill('SIGTERM');
    const late = setTimeout(() => this.child.kill('SIGKILL'), 20_000);
    const code = await this.exited;
    clearTimeout(late);
    return code;
  }

  /** Ends it as a power cut would. */
  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.exited;
  }
}

/** A directory for one test's data, removed by `remove`. */
export function dataDir(): { path: string; write(name: string, text: string): string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'leeway-e2e-data-'));
  return {
    path,
    write(name, text) {
      writeFileSync(join(path, name), text);
      return join(path, name);
    },
    remove: () => rmSync(path, { recursive: true, force: true }),
  };
}

/**
 * A TCP port that is free now, of those that the kernel does not give out by itself: one of the others may be the local port of another
 * test's connection before it is used.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 11_000 + Math.floor(Math.random() * 21_768);
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!free) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}

/** The samples of a /metrics page: `name{labels}` → value. */
export async function metrics(admin: string): Promise<Map<string, number>> {
  const text = await (await fetch(`${admin}/metrics`)).text();
  const samples = new Map<string, number>();
  for (const line of text.split('\n')) {
    const match = /^([a-z_]+(?:\{[^}]*\})?) (\S+)$/i.exec(line);
    if (match) samples.set(match[1]!, Number(match[2]));
  }
  return samples;
}

/** Sum of a metric's samples whose labels hold all of `labels` (`source="peer"`). */
export function sum(samples: Map<string, number>, name: string, ...labels: string[]): number {
  let total = 0;
  for (const [key, value] of samples) {
    if ((key === name || key.startsWith(`${name}{`)) && labels.every((label) => key.includes(label))) total += value;
  }
  return total;
}

/** What /demo/ledger answers: what each client asked the demo's origin for. */
export interface Ledger {
  requests: Record<string, number>;
  bytes: Record<string, number>;
  /** Path → client → requests, media segments only. */
  segments: Record<string, Record<string, number>>;
}

/**
 * Has the demo's page play the film as HLS of MPEG-TS: the segments that it lists are all that it is given then. Of CMAF the sound comes
 * beside them.
 */
export const asMpegTs = 'src=/media/bbb/ts/master.m3u8';

/** The demo as `make demo` starts it: `leeway up` with its own page, origin and film. */
export class Demo {
  private constructor(
    private readonly service: Service,
    readonly url: string,
    readonly admin: string,
    private readonly data: ReturnType<typeof dataDir>,
  ) {}

  static async start(more: string[] = []): Promise<Demo> {
    const data = dataDir();
    const [listen, admin] = [await freePort(), await freePort()];
    const args = [
      'up',
      '--listen',
      `127.0.0.1:${listen}`,
      '--admin',
      `127.0.0.1:${admin}`,
      '--data-dir',
      join(data.path, 'data'),
      ...more,
    ];
    const service = await Service.start(args, `http://127.0.0.1:${admin}/readyz`, 300_000);
    return new Demo(service, `http://127.0.0.1:${listen}`, `http://127.0.0.1:${admin}`, data);
  }

  async ledger(): Promise<Ledger> {
    return (await (await fetch(`${this.url}/demo/ledger`)).json()) as Ledger;
  }

  /** SHA-256 of what a stream had, by path: most of it is gone. */
  async digests(): Promise<Record<string, string>> {
    const token = readFileSync(join(this.data.path, 'data', 'admin-token'), 'utf8').trim();
    const answer = await fetch(`${this.admin}/origin/digests`, { headers: { authorization: `Bearer ${token}` } });
    return (await answer.json()) as Record<string, string>;
  }

  /** Ends it; answers the exit code. */
  async stop(): Promise<number | null> {
    const code = await this.service.stop();
    this.data.remove();
    return code;
  }
}
