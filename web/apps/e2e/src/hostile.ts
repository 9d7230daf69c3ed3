import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { join } from 'node:path';
import { buildDir, root } from './paths.ts';
import type { Stack } from './stack.ts';

export const behaviors = ['flip', 'bad-then-stall', 'false-have', 'garbage', 'channels', 'silent'] as const;
export type Behavior = (typeof behaviors)[number];

/** Behaviors that show without being asked for anything. */
export const unasked: readonly Behavior[] = ['garbage', 'channels'];

/** The end of a link, as the hostile side saw it. */
export interface Out {
  peer: string;
  reason: string;
  asked: number;
  served: number;
  /** Since the link opened, and since the viewer's first request (-1 without one). */
  open_ms: number;
  asked_ms: number;
}

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
    more: string[] = [],
    private readonly child: ChildProcess = spawn(
      join(buildDir, 'hostile'),
      [
        ...['--tracker', `${stack.tracker.replace('http', 'ws')}/`],
        ...['--origin', stack.origin.url('')],
        ...['--site', 'e2e', '--title', '/media/film', '--manifest', '/media/film/master.m3u8'],
        ...['--playlist', stack.origin.url('/media/film/480p/index.m3u8', 'hostile')],
        ...['--behave', behave, '--for', `${seconds}s`],
        ...more,
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

  /** Links to viewers that opened, by the viewer's peer ID. */
  opened(): string[] {
    return this.of('open').map(({ detail }) => detail.peer as string);
  }

  /** Viewers that asked it for pieces. */
  askers(): string[] {
    return [...new Set(this.of('asked').map(({ detail }) => detail.peer as string))];
  }

  /** How links to viewers ended, each by the viewer's doing. */
  outs(): Out[] {
    return this.of('out').map(({ detail }) => ({ peer: detail.peer, ...detail.value }));
  }

  /** Whether all that were wronged have ended their link: those that asked or, where no request is needed, those that linked. */
  settled(): boolean {
    const wronged = unasked.includes(this.behave) ? this.opened() : this.askers();
    const outs = new Set(this.outs().map(({ peer }) => peer));
    return wronged.length > 0 && wronged.every((peer) => outs.has(peer));
  }

  of(event: string): Note[] {
    return this.notes.filter((note) => note.event === event);
  }

  /** Ends it as a user would. */
  stop(): Promise<void> {
    this.child.kill('SIGTERM');
    return this.exited;
  }
}
