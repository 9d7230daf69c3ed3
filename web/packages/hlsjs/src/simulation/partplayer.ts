/** hls.js at the edge of a low-latency stream in virtual time: parts one after the other, each as it is listed. */

import type { PartRef } from '../../../core/src/ports.ts';
import type { Broadcast } from '../../../core/src/simulation/broadcast.ts';
import type { World } from '../../../core/src/simulation/world.ts';
import type { LoaderConstructor, PartLike } from '../hls.ts';
import type { Rendition } from './line.ts';
import { type Frag, Player } from './player.ts';

const segmentMs = 2000;
const partMs = 500;
/** Parts behind the last one that a player begins with. */
const behind = 3;

const partOf = ({ sequence, index, url, startMs }: PartRef): PartLike => ({
  fragment: { sn: sequence },
  index,
  url,
  start: startMs / 1000,
  duration: partMs / 1000,
});

export class PartPlayer extends Player {
  constructor(
    world: World,
    /** One a rendition. */
    private readonly streams: Broadcast[],
    renditions: Rendition[],
    loader: LoaderConstructor,
    draw: () => number,
  ) {
    super(world, { renditions, segments: [], segment: () => undefined as never }, loader, draw);
  }

  override get latestLevelDetails() {
    return { live: true };
  }

  /** Plays so many parts. */
  override async play(count: number): Promise<void> {
    this.trigger('hlsManifestLoading', {});
    this.nextLoadLevel = 0;
    const first = this.streams[0]!.latest() - behind + 1;
    this.positionMs = first * partMs;
    for (let n = first; n < first + count; n++) {
      // In the middle of a segment no other rendition can be decoded.
      if (n === first || this.streams[0]!.part(n).index === 0) this.choose();
      // The reload of the playlist waits for the part.
      const due = this.streams[0]!.dueMs(n);
      await this.wait(Math.max(0, due) + 10 + 10 * this.draw());
      this.list();
      await this.fetchPart(n);
    }
    this.abr.clearTimer();
  }

  /** The playlist of the level. */
  private list(): void {
    const level = this.levels[this.loadLevel]!;
    if (level.details) return;
    const stream = this.streams[this.loadLevel]!;
    const details = {
      live: true,
      fragments: [],
      targetduration: segmentMs / 1000,
      averagetargetduration: segmentMs / 1000,
      partTarget: partMs / 1000,
      get partList() {
        return stream.listed().map(partOf);
      },
    };
    level.details = details;
    this.trigger('hlsLevelLoaded', {
      details,
      levelInfo: level,
      stats: { loading: { start: 0, first: 5, end: 10 } },
    });
  }

  private async fetchPart(n: number): Promise<void> {
    const { config, loadLevel } = this;
    const stream = this.streams[loadLevel]!;
    const ref = stream.part(n);
    const loader = new (config.fLoader ?? config.loader)(config);
    const stats = Object.assign(loader.stats, { parsing: { start: 0, end: 0 } });
    const part = { ...partOf(ref), stats };
    const frag: Frag = {
      sn: ref.sequence,
      start: (ref.sequence * segmentMs) / 1000,
      duration: segmentMs / 1000,
      level: loadLevel,
      type: 'main',
      url: '',
      baseurl: stream.playlist,
      bitrateTest: false,
      bitrate: (stream.partBytes * 8000) / partMs,
      stats,
      abortRequests: () => loader.abort(),
    };
    const loaded = this.load(loader, { frag, part, url: part.url, headers: {}, rangeStart: 0, rangeEnd: 0 });
    this.trigger('hlsFragLoading', { frag, part });
    const ok = await loaded;
    loader.destroy();
    // What it gives up it asks for again, in a lower rendition.
    if (!ok) {
      this.choose();
      this.list();
      return this.fetchPart(n);
    }
    stats.parsing.start = stats.parsing.end = this.world.now();
    this.trigger('hlsFragLoaded', { frag, part });
    await this.wait(5 + 20 * this.draw());
    stats.parsing.end = this.world.now();
    this.update();
    this.bufferedMs = (n + 1) * partMs;
    this.currentLevel = loadLevel;
    this.trigger('hlsFragBuffered', { frag, part });
    this.chosen.push(loadLevel);
    this.estimates.push(this.estimate);
  }
}
