/** The stage of one cell: its folder on the origin, its viewers, and what came of it. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Adapter } from '../adapter.ts';
import type { Asker, Bench, Body, Fault, OriginRequest } from '../bench.ts';
import { clearKey, type Fixture, fixtures } from '../fixtures/recipe.ts';
import { type Folder, Media, type MediaOptions } from '../origin/media.ts';
import { Packager } from '../origin/packager.ts';
import { assetsOf, type PageOptions, pageHtml, type Setting } from '../page/html.ts';
import { pause, View } from './view.ts';

export interface SceneOptions extends Pick<MediaOptions, 'live' | 'lowLatency'> {
  fixture: keyof typeof fixtures;
  cmcd?: Setting['cmcd'];
  /** Players on the page. */
  players?: number;
}

/** Seconds that players are asked to buffer ahead: short, so that a second viewer has something left to ask its peer for. */
const bufferSeconds = 8;

export class Scene {
  readonly fixture: Fixture;
  private readonly views: View[] = [];
  private readonly undo: (() => unknown)[] = [];

  private constructor(
    readonly adapter: Adapter,
    private readonly bench: Bench,
    private readonly prefix: string,
    private readonly options: SceneOptions,
    readonly media: Folder,
  ) {
    this.fixture = media.fixture;
  }

  /** Opens a cell's folder: `prefix` is a path of its own, so that nothing of another cell is in a cache. */
  static async open(bench: Bench, adapter: Adapter, prefix: string, options: SceneOptions): Promise<Scene> {
    const media = await folder(bench, adapter, options);
    const scene = new Scene(adapter, bench, prefix, options, media);
    if (media instanceof Packager) scene.undo.push(() => media.stop());
    const assets = assetsOf(adapter);
    const answer = async (path: string, query: URLSearchParams) => {
      if (path === 'watch.html') return Buffer.from(pageHtml(adapter, JSON.parse(query.get('o')!) as PageOptions));
      const asset = assets.get(path);
      return asset ? readFile(asset) : scene.media.answer({ path, query });
    };
    scene.undo.push(bench.origin.mount(prefix, answer));
    return scene;
  }

  get live(): boolean {
    return !!this.options.live;
  }

  /** Opens the page in a window; `plain`: without Leeway. */
  async view(asker: Exclude<Asker, 'server'>, plain = false): Promise<View> {
    const { bench, options, fixture } = this;
    const manifest = this.adapter.format === 'dash' ? fixture.dash : fixture.hls;
    const setting: Setting = {
      manifest: manifest!,
      buffer: bufferSeconds,
      cmcd: options.cmcd ?? '',
      lowLatency: !!options.lowLatency,
      ...(options.fixture === 'clearkey' && { clearKey: { license: 'license', ...clearKey } }),
    };
    const page: PageOptions = {
      players: Array.from({ length: options.players ?? 1 }, () => setting),
      ...(!plain && { tracker: bench.tracker }),
    };
    const window = await bench.browser.window();
    const view = new View(asker, window);
    this.views.push(view);
    const query = encodeURIComponent(JSON.stringify(page));
    await window.goto(bench.origin.url(`${this.prefix}watch.html?o=${query}`, asker));
    return view;
  }

  fault(fault: Omit<Fault, 'path'> & { file: RegExp }): () => void {
    const path = new RegExp(`^${this.prefix}(?:${fault.file.source})`);
    const end = this.bench.origin.fault({ ...fault, path });
    this.undo.push(end);
    return end;
  }

  /** Requests so far, by file names of the folder. */
  requests(): OriginRequest[] {
    return this.bench.origin
      .requests(this.prefix)
      .map((request) => ({ ...request, path: request.path.slice(this.prefix.length) }));
  }

  /** The origin's bytes of a resource, or of a range of it; undefined: it has none. */
  async bytes(url: string, range: string): Promise<Buffer | undefined> {
    const { pathname } = new URL(url);
    if (!pathname.startsWith(this.prefix)) return undefined;
    const body = await this.media.answer({
      path: pathname.slice(this.prefix.length),
      query: new URLSearchParams(),
    });
    const whole = body && (await wholeOf(body));
    const [, first, last] = /^(?:bytes=)?(\d+)-(\d+)$/.exec(range) ?? [];
    return first === undefined ? whole : whole?.subarray(Number(first), Number(last) + 1);
  }

  async close(): Promise<void> {
    // The packager, which came first, goes last.
    for (const f of this.undo.splice(0).reverse()) await f();
    await Promise.all(this.views.splice(0).map((view) => view.close().catch(() => {})));
  }
}

/** All of a body, once it is made. */
async function wholeOf(body: Body): Promise<Buffer> {
  if (Buffer.isBuffer(body)) return body;
  const parts: Buffer[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts);
}

/** What is played: of DASH in CMAF, and what is live there as a packager has it. */
async function folder(bench: Bench, { format }: Adapter, options: SceneOptions): Promise<Folder> {
  const fixture: Fixture = fixtures[options.fixture];
  const { live, lowLatency } = options;
  const dash = format === 'dash' && !fixture.dash;
  if (dash && live) {
    // Chunks are its own: of those of HLS ffmpeg reads the first ones alone.
    const { name, seconds } = fixtures.live;
    return Packager.start(join(bench.fixtures, name, 'index.m3u8'), seconds, live, lowLatency);
  }
  const time = { now: () => performance.now(), wait: pause };
  // What is not of one container is the same in CMAF.
  return new Media(bench.fixtures, dash ? fixtures.cmaf : fixture, { ...time, live, lowLatency });
}
