import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { join } from 'node:path';
import { buildDir, root } from './paths.ts';
import type { Stack } from './stack.ts';

export const behaviors = ['flip', 'bad-then-stall', 'false-have', 'garbage', 'channels', 'silent'] as const;
export type Behavior = (typeof behaviors)[number];

export interface Note {
  event: string;
  // biome-ignore lint/suspicious/noExplicitAny: depends on the event
  detail: any;
}

/** Builds the hostile viewer (Go, test/e2e/hostile). */
export function buildHostile(): void {
  execFileSync('go', ['build', '-o', join(buildDir, 'hostile'), './test/e2e/hostile'], { cwd: root, stdio: 'inherit' });
}

/** One hostile viewer in the swarm of the stack's film. */
export class Hostile {
  readonly notes: Note[] = [];
  private readonly exited: Promise<void>;

  constructor(
    stack: Stack,
    readonly behave: Behavior,
    seconds: number,
    private readonly child: ChildProcess = spawn(
      join(buildDir, 'hostile'),
      [
        ...['--tracker', `${stack.tracker.replace('http', 'ws')}/`],
        ...['--origin', stack.origin.url('')],
        ...['--site', 'e2e', '--title', '/media/film', '--manifest', '/media/film/master.m3u8'],
        ...['--playlist', stack.origin.url('/media/film/480p/index.m3u8', 'hostile')],
        ...['--behave', behave, '--for', `${seconds}s`],
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    ),
  ) {
    let rest = '';
    child.stdout!.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split('\n');
      rest = lines.pop()!;
      for (const line of lines) this.notes.push(JSON.parse(line) as Note);
    });
    this.exited = new Promise((resolve) => child.once('exit', () => resolve()));
  }

  /** Its peer ID, 32 hexadecimal digits. */
  get peer(): string {
    return String(this.of('session')[0]?.detail ?? '');
  }

  of(event: string): Note[] {
    return this.notes.filter((note) => note.event === event);
  }

  done(): Promise<void> {
    return this.exited;
  }

  kill(): void {
    this.child.kill('SIGKILL');
  }
}
