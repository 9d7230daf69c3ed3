/** A live presentation of DASH that ffmpeg packages while it is watched: the kit writes no MPD itself. */

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { type FileHandle, mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Body } from '../bench.ts';
import { type Fixture, segmentSeconds } from '../fixtures/recipe.ts';
import { type LiveOptions, partsOfSegment } from './live.ts';
import type { Ask, Folder } from './media.ts';

const manifest = 'manifest.mpd';

/** Where the MPD says that the time of day is. */
const clock = 'time';

/** How often the folder is looked at before the presentation begins, in ms. */
const lookMs = 100;

/** How often a segment that is being made is looked at, and how long a request waits for it to begin, in ms. */
const growsMs = 20;
const beginsMs = 1_500;

/** Seconds that viewers of low latency are behind the edge: too near for a player that waits until a segment of two is whole. */
const latencySeconds = 3;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** What ffmpeg does with a presentation of HLS: nothing is encoded, so that it costs a cell next to nothing. */
export function packagerArgs(source: string, { window }: LiveOptions, lowLatency = false): string[] {
  const input = '-hide_banner -nostdin -loglevel error -re -i'.split(' ');
  // What has left the window stays: what players were given is compared with it.
  const kept = `-window_size ${window} -extra_window_size 1000`;
  const output =
    // MPEG-TS has tags of its own.
    `-map 0:v -map 0:a -c copy -tag:v avc1 -tag:a mp4a -f dash -seg_duration ${segmentSeconds} -use_template 1 ${kept} ` +
    // Segments can be asked for before they are whole where their times are known before.
    (lowLatency
      ? `-use_timeline 0 -streaming 1 -ldash 1 -frag_type duration -frag_duration ${segmentSeconds / partsOfSegment} `
      : '-use_timeline 1 ') +
    `-utc_timing_url ${clock} -init_seg_name init-$RepresentationID$.mp4 ` +
    `-media_seg_name seg-$RepresentationID$-$Number%03d$.m4s ${manifest}`;
  return [...input, source, '-adaptation_sets', 'id=0,streams=v id=1,streams=a', ...output.split(' ')];
}

/** An MPD of ffmpeg. It suggests to stay one segment behind the edge, which leaves a player no time to load the next one. */
export const roomy = (mpd: string, seconds = 3 * segmentSeconds): string =>
  mpd.replace(/suggestedPresentationDelay="[^"]*"/, `suggestedPresentationDelay="PT${seconds}S"`);

/** What is in a file, and what is written into it, until it is whole. */
export async function* follow(file: FileHandle, whole: () => boolean): AsyncGenerator<Buffer> {
  try {
    for (;;) {
      // Before it is read: what is written meanwhile is read then.
      const last = whole();
      const { buffer, bytesRead } = await file.read(Buffer.alloc(65_536));
      if (bytesRead > 0) yield buffer.subarray(0, bytesRead);
      else if (last) return;
      else await pause(growsMs);
    }
  } finally {
    await file.close();
  }
}

export class Packager implements Folder {
  private follows = 0;

  private constructor(
    readonly fixture: Fixture,
    private readonly dir: string,
    private readonly program: ChildProcess,
    private readonly ended: Promise<unknown>,
    private readonly lowLatency: boolean,
  ) {}

  /** Packages a playlist of HLS. Resolves when as much is there as a presentation begins with. */
  static async start(source: string, seconds: number, live: LiveOptions, lowLatency = false): Promise<Packager> {
    const dir = await mkdtemp(join(tmpdir(), 'leeway-live-'));
    const program = spawn('ffmpeg', packagerArgs(source, live, lowLatency), {
      cwd: dir,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    program.stderr.on('data', (text) => {
      said += text;
    });
    let over = false;
    const ended = new Promise<void>((resolve) => {
      const end = () => {
        over = true;
        resolve();
      };
      program.once('error', (error) => {
        said += error.message;
        end();
      });
      program.once('close', end);
    });
    const fixture: Fixture = { name: dir, dash: manifest, seconds, media: /seg-\d-\d+\.m4s$/ };
    const packager = new Packager(fixture, dir, program, ended, lowLatency);
    const begins = `seg-0-${String(Math.ceil(live.head / segmentSeconds)).padStart(3, '0')}.m4s`;
    while (!existsSync(join(dir, begins))) {
      if (over) {
        await packager.stop();
        throw new Error(`conformance: ffmpeg packages no live presentation: ${said.trim() || 'it has ended'}`);
      }
      await pause(lookMs);
    }
    return packager;
  }

  async answer({ path }: Ask): Promise<Body | undefined> {
    if (path === clock) return Buffer.from(new Date().toISOString());
    if (!/^[\w-]+\.(mpd|mp4|m4s)$/.test(path)) return undefined;
    const file = await readFile(join(this.dir, path)).catch(() => undefined);
    if (path === manifest)
      return file && Buffer.from(roomy(file.toString(), this.lowLatency ? latencySeconds : undefined));
    return file ?? (this.lowLatency && this.isMedia(path) ? this.growing(path) : undefined);
  }

  get early(): number | undefined {
    return this.lowLatency ? this.follows : undefined;
  }

  /** A segment that ffmpeg writes under another name until it is whole; undefined: it has not begun. */
  private async growing(path: string): Promise<Body | undefined> {
    const name = join(this.dir, path);
    for (let waited = 0; waited < beginsMs; waited += growsMs) {
      const file = await open(`${name}.tmp`).catch(() => undefined);
      if (file) {
        this.follows++;
        return follow(file, () => existsSync(name));
      }
      await pause(growsMs);
    }
    // It may have got its name in the meantime.
    return readFile(name).catch(() => undefined);
  }

  isMedia(path: string): boolean {
    return this.fixture.media.test(path);
  }

  async stop(): Promise<void> {
    this.program.kill('SIGKILL');
    await this.ended;
    await rm(this.dir, { recursive: true, force: true });
  }
}
