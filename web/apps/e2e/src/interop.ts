import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { root } from './paths.ts';
import type { Stack } from './stack.ts';

/** What the peer in Python (test/interop) prints. */
export interface InteropReport {
  session: string;
  /** Name of a segment that it has whole → SHA-256. */
  segments: Record<string, string>;
  wanted: number;
  /** `ROLE PEER` → verified bytes. */
  taken: Record<string, number>;
  served: Record<string, number>;
  problems: string[];
  links: { role: string; ended: string; opened: boolean }[];
}

export const interopPython = process.env.LEEWAY_INTEROP_PYTHON;

/** One peer in Python in the swarm of the stack's film. */
export class Interop {
  private readonly reports: InteropReport[] = [];
  private readonly exited: Promise<void>;
  private readonly said: string[] = [];

  constructor(
    stack: Stack,
    options: { from: 'seed' | 'viewer'; segments: number; serve?: number },
    private readonly child: ChildProcess = spawn(
      interopPython!,
      [
        ...['-m', 'leeway_peer', '--tracker', `${stack.tracker.replace('http', 'ws')}/`, '--site', 'e2e'],
        ...['--origin', stack.origin.url('')],
        ...['--manifest', stack.origin.url('/media/film/master.m3u8')],
        ...['--playlist', stack.origin.url('/media/film/480p/index.m3u8')],
        ...['--from', options.from, '--segments', `${options.segments}`, '--serve', `${options.serve ?? 0}`],
      ],
      {
        cwd: join(root, 'test/interop'),
        env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    ),
  ) {
    let rest = '';
    child.stdout!.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split('\n');
      rest = lines.pop()!;
      for (const line of lines) this.reports.push(JSON.parse(line) as InteropReport);
    });
    child.stderr!.on('data', (chunk: Buffer) => this.said.push(chunk.toString()));
    this.exited = new Promise((resolve) => child.once('exit', () => resolve()));
  }

  /** What it says when it has all that it wants, or has given up. */
  async taken(): Promise<InteropReport> {
    const deadline = Date.now() + 60_000;
    while (this.reports.length === 0) {
      if (this.child.exitCode !== null || Date.now() > deadline)
        throw new Error(`the peer in Python said nothing:\n${this.said.join('')}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return this.reports[0]!;
  }

  /** Ends it; answers its last report. */
  async stop(): Promise<InteropReport> {
    this.child.kill('SIGTERM');
    await this.exited;
    return this.reports.at(-1)!;
  }
}
