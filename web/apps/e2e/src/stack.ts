import { execFile, execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { addPublicAddress, Front, publicAddress } from './front.ts';
import { type Asker, lines, Origin } from './origin.ts';
import { installPage, pagePath } from './page.ts';
import { binary } from './paths.ts';
import { dataDir, freePort, Service } from './service.ts';
import type { PageOptions } from './watched.ts';

/** The folder of the demo's film, or of its CMAF form, which is made if it is not there yet. */
export function filmDir(...form: '--cmaf'[]): string {
  return execFileSync(binary, ['film', ...form], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim();
}

/** Addresses of one stack; the same ones again after a restart. */
interface Ports {
  listen: number;
  admin: number;
  seed: number;
  seedAdmin: number;
  nats: number;
  front: number;
}

export interface StackOptions {
  /** A tracker and a seed as processes of their own. */
  split?: boolean;
  /** Beside the tracker's own settings; with `split` alone. */
  tracker?: object;
  /** Beside the site's own policy. */
  policy?: object;
  /** The seed has a public-looking address; with `split` alone. */
  publicSeed?: boolean;
  /** Paths of files that viewers share as they are. */
  files?: string[];
  /** The film is signed at packaging, and the site has the packager's key. */
  packaged?: boolean;
  /** No seed is started; with `split` alone. */
  seedless?: boolean;
  /** Keys that join tokens are checked with, a JWK Set: the site is token-only. */
  tokenKeys?: object;
}

/**
 * An origin of our own (ledger, faults, shaping) and Leeway for its site: one `leeway up`, or with `split` a tracker and a
 * seed that can be killed one by one.
 */
export class Stack {
  private tracked?: Service;
  private seeded?: Service;
  private packagerKey?: string;

  private constructor(
    readonly origin: Origin,
    private readonly ports: Ports,
    private readonly data: ReturnType<typeof dataDir>,
    private readonly options: StackOptions,
  ) {}

  static async start(options: StackOptions = {}): Promise<Stack> {
    const origin = await Origin.start(filmDir());
    installPage(origin);
    const ports: Ports = {
      listen: await freePort(),
      admin: await freePort(),
      seed: await freePort(),
      seedAdmin: await freePort(),
      nats: await freePort(),
      front: await freePort(),
    };
    const stack = new Stack(origin, ports, dataDir(), options);
    try {
      if (options.packaged) stack.sign();
      if (options.split) {
        await stack.startTracker();
        if (!options.seedless) await stack.startSeed();
      } else {
        await stack.startUp();
      }
    } catch (error) {
      await stack.stop();
      throw error;
    }
    return stack;
  }

  /** Base URL of the tracker and of leeway.js. */
  get tracker(): string {
    return `http://127.0.0.1:${this.ports.listen}`;
  }

  /** Base URL of the admin port (the tracker's, with `split`). */
  get admin(): string {
    return `http://127.0.0.1:${this.ports.admin}`;
  }

  /** Runs a command against the admin port, as an operator on this machine does. */
  async operate(...args: string[]): Promise<void> {
    const token = join(this.data.path, this.options.split ? 'tracker' : 'up', 'admin-token');
    await promisify(execFile)(binary, [...args, '--admin', new URL(this.admin).host, '--admin-token-file', token]);
  }

  /** Has `leeway certify` sign each media playlist; the origin serves the lists. The folder of the film stays as it is. */
  private sign(): void {
    const film = filmDir();
    const key = join(this.data.path, 'packager.key');
    const certify = (...args: string[]) =>
      execFileSync(binary, ['certify', '--key', key, ...args], { maxBuffer: 1 << 25 });
    this.packagerKey = /packager_keys: \[([\w-]+)\]/.exec(certify('--public').toString())![1]!;
    for (const file of readdirSync(film, { recursive: true, encoding: 'utf8' }).filter((f) => /\/.*\.m3u8$/.test(f))) {
      const folder = `/media/film/${dirname(file)}/`;
      const list = certify('--site', 'e2e', '--path', folder, '--stdout', join(film, file));
      this.origin.replaced.set(`/media/film/${file}.leeway`, list);
    }
  }

  /** Serves the film in CMAF, for players of DASH, below `/cmaf/`. */
  serveCMAF(): void {
    const folder = filmDir('--cmaf');
    this.origin.mounts.set('/cmaf/', (path) => readFile(join(folder, path)).catch(() => undefined));
  }

  private async startUp(): Promise<void> {
    const { listen, admin, seed } = this.ports;
    const site = this.data.write('site.json', JSON.stringify(this.site()));
    const addresses = ['--listen', local(listen), '--admin', local(admin), '--seed-listen', local(seed)];
    const args = ['up', '--site', site, ...addresses, '--data-dir', join(this.data.path, 'up')];
    this.tracked = await Service.start(args, `${this.admin}/readyz`);
  }

  async startTracker(): Promise<void> {
    const { listen, admin, nats } = this.ports;
    const config = this.data.write(
      'tracker.json',
      JSON.stringify({
        sites: [this.site()],
        tracker: {
          listen: local(listen),
          admin: local(admin),
          data_dir: join(this.data.path, 'tracker'),
          ...this.options.tracker,
        },
        nats: { listen: local(nats) },
      }),
    );
    this.tracked = await Service.start(['tracker', '--config', config], `${this.admin}/readyz`);
  }

  async startSeed(): Promise<void> {
    const { seed, seedAdmin, nats } = this.ports;
    const listen = this.options.publicSeed ? `${publicAddress}:${seed}` : local(seed);
    if (this.options.publicSeed) addPublicAddress();
    const config = this.data.write(
      'seed.json',
      JSON.stringify({
        sites: [this.site()],
        seed: { listen, admin: local(seedAdmin), data_dir: join(this.data.path, 'seed') },
        nats: { url: `nats://${local(nats)}` },
      }),
    );
    this.seeded = await Service.start(['seed', '--config', config], `http://${local(seedAdmin)}/readyz`);
  }

  /** As a power cut would. */
  async killTracker(): Promise<void> {
    await this.tracked!.kill();
  }

  async killSeed(): Promise<void> {
    await this.seeded!.kill();
  }

  /** As an operator would: it says goodbye. */
  async stopSeed(): Promise<void> {
    await this.seeded!.stop();
  }

  /** Puts page, film, script and tracker on a public-looking https address; answers its base URL. */
  async publish(): Promise<{ base: string; front: Front }> {
    const { listen, front: port } = this.ports;
    const front = await Front.start(port, (path, upgrade) =>
      upgrade || path.startsWith('/leeway') ? listen : this.origin.port(),
    );
    return { base: `https://${publicAddress}:${port}`, front };
  }

  /** Path and query of the test page. */
  path(options: PageOptions): string {
    return pagePath(options);
  }

  /** URL of the test page with the drop-in. */
  page(options: PageOptions = {}, asker: Asker = 'viewer'): string {
    return this.origin.url(pagePath({ tracker: this.tracker, ...options }), asker);
  }

  /** URL of the same page without it. */
  plain(options: PageOptions = {}, asker: Asker = 'viewer'): string {
    return this.origin.url(pagePath(options), asker);
  }

  /** What the processes said, for a test that failed. */
  logs(): string[] {
    return [...(this.tracked?.lines ?? []), ...(this.seeded?.lines ?? [])];
  }

  async stop(): Promise<void> {
    await Promise.all([this.seeded?.stop(), this.tracked?.stop()]);
    await this.origin.stop();
    this.data.remove();
  }

  /** The site: the ports of one origin serve the same paths, and the seed has one to itself. */
  private site(): unknown {
    const hosts = (['viewer', 'shaped', ...lines] as const).map((asker) => local(this.origin.port(asker)));
    hosts.push(`${publicAddress}:${this.ports.front}`);
    return {
      name: 'e2e',
      hosts,
      fetch_base: this.origin.url('', 'seed'),
      ...(this.options.tokenKeys ? {} : { title: { explicit: [{ title: '{}', manifests: ['/*'] }] } }),
      files: this.options.files,
      cmcd: true,
      ...(this.packagerKey && { packager_keys: [this.packagerKey] }),
      policy: { certify_from: 1, costly_titles: 'share', control_group_permille: 0, ...this.options.policy },
      ...(this.options.tokenKeys && {
        token_keys: this.data.write('keys.json', JSON.stringify(this.options.tokenKeys)),
      }),
    };
  }
}

function local(port: number): string {
  return `127.0.0.1:${port}`;
}
