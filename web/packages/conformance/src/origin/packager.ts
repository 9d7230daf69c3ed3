/** A live presentation of DASH that ffmpeg packages while it is watched: the kit writes no MPD itself. */

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Fixture, segmentSeconds } from '../fixtures/recipe.ts';
import type { LiveOptions } from './live.ts';
import type { Ask, Folder } from './media.ts';

const manifest = 'manifest.mpd';

/** Where the MPD says that the time of day is. */
const clock = 'time';

/** How often the folder is looked at before the presentation begins, in ms. */
const lookMs = 100;

/** What ffmpeg does with a presentation of HLS: nothing is encoded, so that it costs a cell next to nothing. */
export function packagerArgs(source: string, { window }: LiveOptions): string[] {
  const input = '-hide_banner -nostdin -loglevel error -re -i'.split(' ');
  // What has left the window stays: what players were given is compared with it.
  const kept = `-window_size ${window} -extra_window_size 1000`;
  const output =
    // MPEG-TS has tags of its own.
    `-map 0:v -map 0:a -c copy -tag:v avc1 -tag:a mp4a -f dash -seg_duration ${segmentSeconds} -use_template 1 -use_timeline 1 ${kept} ` +
    `-utc_timing_url ${clock} -init_seg_name init-$RepresentationID$.mp4 ` +
    `-media_seg_name seg-$RepresentationID$-$Number%03d$.m4s ${manifest}`;
  return [...input, source, '-adaptation_sets', 'id=0,streams=v id=1,streams=a', ...output.split(' ')];
}

/** An MPD of ffmpeg. It suggests to stay one segment behind the edge, which leaves a player no time to load the next one. */
export const roomy = (mpd: string): string =>
  mpd.replace(/suggestedPresentationDelay="[^"]*"/, `suggestedPresentationDelay="PT${3 * segmentSeconds}S"`);

export class Packager implements Folder {
  private constructor(
    readonly fixture: Fixture,
    private readonly dir: string,
    private readonly program: ChildProcess,
    private readonly ended: Promise<unknown>,
  ) {}

  /** Packages a playlist of HLS. Resolves when as much is there as a presentation begins with. */
  static async start(source: string, seconds: number, live: LiveOptions): Promise<Packager> {
    const dir = await mkdtemp(join(tmpdir(), 'leeway-live-'));
    const program = spawn('ffmpeg', packagerArgs(source, live), { cwd: dir, stdio: ['ignore', 'ignore', 'pipe'] });
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
    const packager = new Packager(fixture, dir, program, ended);
    const begins = `seg-0-${String(Math.ceil(live.head / segmentSeconds)).padStart(3, '0')}.m4s`;
    while (!existsSync(join(dir, begins))) {
      if (over) {
        await packager.stop();
        throw new Error(`conformance: ffmpeg packages no live presentation: ${said.trim() || 'it has ended'}`);
      }
      await new Promise((resolve) => setTimeout(resolve, lookMs));
    }
    return packager;
  }

  async answer({ path }: Ask): Promise<Buffer | undefined> {
    if (path === clock) return Buffer.from(new Date().toISOString());
    if (!/^[\w-]+\.(mpd|mp4|m4s)$/.test(path)) return undefined;
    const file = await readFile(join(this.dir, path)).catch(() => undefined);
    return file && path === manifest ? Buffer.from(roomy(file.toString())) : file;
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
