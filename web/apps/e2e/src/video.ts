import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { PageOptions, Player } from './watched.ts';

/** Video.js as its makers publish it. */
export const videojsScript = (): Buffer =>
  readFileSync(createRequire(import.meta.url).resolve('video.js/dist/video.min.js'));

/** Runs in the page: an ordinary player of Video.js. Uses nothing from outside, it is serialized. */
export function playVideojs(options: PageOptions): void {
  // biome-ignore lint/suspicious/noExplicitAny: the page's Video.js, untyped here
  const page = window as any;
  const { videojs } = page;
  const { Vhs } = videojs;
  const { level = -1, buffer = 20 } = options;
  Vhs.GOAL_BUFFER_LENGTH = Vhs.MAX_GOAL_BUFFER_LENGTH = buffer;
  const errors: Player['errors'] = [];
  const played: Player['played'] = [];
  const asked: NonNullable<Player['asked']> = [];
  const ms = () => Math.round(performance.now());
  let shown: TextTrackCue | undefined;
  const player = videojs(document.querySelector('video'), {
    // Chromium's own estimate, which VHS takes by default, is one of all windows, so of the lines of all viewers.
    html5: { vhs: { limitRenditionByPlayerDimensions: false, useNetworkInformationApi: false } },
  });
  page.__videojs = player;
  videojs.log.level('off');
  player.on('error', () =>
    errors.push({ type: 'videojs', details: String(player.error()?.message), fatal: true, code: player.error()?.code }),
  );
  player.on('loadedmetadata', () => {
    const { vhs } = player.tech(true);
    const all = vhs.representations().sort((a: Rendition, b: Rendition) => a.bandwidth - b.bandwidth);
    for (const [i, one] of all.entries()) if (level >= 0) one.enabled(i === level);
  });
  player.on(['loadstart', 'loadedmetadata'], () => {
    // What is on the screen, as VHS tells it: its track is there since the source was set.
    const tracks = Array.from(player.textTracks() as ArrayLike<TextTrack>);
    const track = tracks.find(({ label }) => label === 'segment-metadata');
    track?.addEventListener('cuechange', () => {
      const cue = track.activeCues?.[0] as (TextTrackCue & { value: { bandwidth: number } }) | undefined;
      // A moment between two segments has both, and none where they do not quite meet.
      if (!cue || cue === shown) return;
      shown = cue;
      const { bandwidth } = cue.value;
      const duration = cue.endTime - cue.startTime;
      played.push({ level: bandwidth, bitrate: bandwidth, duration, at: performance.now() });
    });
  });
  // What VHS asks for, and at which estimate; renditions by their height, as their folders have it.
  const nameOf = (url: string) => {
    const [, level, sn] = /(\d+)p\/seg-(\d+)/.exec(url) ?? [];
    return sn ? { sn: Number(sn), level: Number(level) } : undefined;
  };
  // biome-ignore lint/suspicious/noExplicitAny: the player's event
  player.on('segmentloadstart', ({ metadata }: any) => {
    const name = nameOf(metadata.segmentInfo.uri);
    const kbps = Math.round(player.tech(true).vhs.systemBandwidth / 1000);
    if (name) asked.push({ ...name, at: ms(), kbps });
  });
  // And what came of it where the origin was asked, by the browser's own account.
  const { open } = XMLHttpRequest.prototype;
  XMLHttpRequest.prototype.open = function (this: XMLHttpRequest, ...how: unknown[]) {
    const name = nameOf(String(how[1]));
    const entry = asked.findLast(({ sn, level }) => sn === name?.sn && level === name.level);
    if (entry) follow(this, entry);
    Reflect.apply(open, this, how);
  };
  const follow = (request: XMLHttpRequest, entry: (typeof asked)[number]) => {
    let [sent, first, loaded, total] = [0, 0, 0, 0];
    const on = (type: 'loadstart' | 'progress' | 'load' | 'abort', f: (event: ProgressEvent) => void) =>
      request.addEventListener(type, f);
    on('loadstart', () => (sent = ms()));
    on('progress', (event) => {
      first ||= ms();
      ({ loaded, total } = event);
    });
    on('load', () => (entry.took = [first - sent, ms() - first]));
    on('abort', () => {
      entry.took = [first - sent, ms() - first];
      entry.gaveUp = { at: ms(), loaded, total };
    });
  };
  player.src({ src: options.manifest ?? '/media/film/master.m3u8', type: 'application/x-mpegurl' });
  player.play()?.catch(() => {});
  page.__player = async () => ({
    level: played.at(-1)?.level ?? -1,
    estimate: player.tech(true).vhs?.systemBandwidth ?? 0,
    played: [...played],
    asked: [...asked],
    loaded: [],
    errors: [...errors],
  });

  interface Rendition {
    bandwidth: number;
    enabled(on: boolean): void;
  }
}
