/** Ties one player of Video.js to the library, and unties it. */

import { type Leeway, observePlayback, type Playback } from '@leeway/core';
import { type Asked, createXhr } from './loader.ts';
import { bitrateAt, placeOf } from './position.ts';
import {
  isVideojs,
  type PlayerLike,
  type VhsHandler,
  type VhsXhr,
  type VideojsLike,
  type VideojsNamespace,
  type VideojsPlayer,
} from './videojs.ts';

export interface AttachOptions {
  /** Explicit title of what this player plays. */
  title?: string;
}

const attached = new WeakMap<PlayerLike, () => void>();
/** Of each Video.js: how many attached players need ours in place of `Vhs.xhr`, and what undoes that. */
const users = new WeakMap<VideojsLike, { count: number; undo(): void }>();
/** What VHS asks for just now: its function and ours are one call. */
let asking: Asked | undefined;

/** Has our function there while a player needs it. Returns what lets go of it. */
function use(videojs: VideojsLike, leeway: Leeway): () => void {
  const take = () => {
    const asked = asking;
    asking = undefined;
    return asked;
  };
  const ours = (before: VhsXhr) => createXhr(videojs, before, leeway.clock, take);
  const used = users.get(videojs) ?? { count: 0, undo: replace(videojs.Vhs, ours) };
  users.set(videojs, used);
  used.count++;
  return () => {
    if (--used.count > 0) return;
    users.delete(videojs);
    used.undo();
  };
}

/** Has a function of ours in the place of the one that is there. Returns what undoes it. */
function replace(owner: { xhr: VhsXhr }, make: (before: VhsXhr) => VhsXhr): () => void {
  const before = owner.xhr;
  const ours = make(before);
  owner.xhr = ours;
  return () => {
    // Another script may have wrapped ours since; then it stays, and lets everything pass.
    if (owner.xhr === ours) owner.xhr = before;
  };
}

/** Has VHS's own function of a source say what it asks for. Returns what undoes it. */
const wrap = (vhs: VhsHandler, about: (options: Parameters<VhsXhr>[0]) => Asked | undefined): (() => void) =>
  replace(
    vhs,
    (xhr) =>
      new Proxy(xhr, {
        apply(target, _this, [options, callback]) {
          asking = about(options);
          try {
            return target(options, callback);
          } finally {
            asking = undefined;
          }
        },
      }),
  );

/**
 * Lets a player of Video.js 8 share the segments of what VHS plays of HLS. Hooks and settings of the page stay, but for
 * `useNetworkInformationApi`, which is off from the first segment on that peers have sent a part of; playlists and keys are not
 * touched, and DASH plays as before. Returns a function that takes the plug-in out again. Throws a `TypeError` if it is given
 * something else.
 */
export function attachVideojs(
  leeway: Leeway,
  videojs: VideojsNamespace,
  player: VideojsPlayer,
  options: AttachOptions = {},
): () => void {
  if (typeof leeway?.open !== 'function') {
    throw new TypeError('attachVideojs(leeway, videojs, player) needs what createLeeway() returned first.');
  }
  if (!isVideojs(videojs)) {
    throw new TypeError(
      'attachVideojs(leeway, videojs, player) needs the function of Video.js 8 with VHS second: window.videojs.',
    );
  }
  if (typeof (player as Partial<PlayerLike> | undefined)?.tech !== 'function') {
    throw new TypeError('attachVideojs(leeway, videojs, player) needs a player: what videojs(element) returned.');
  }
  return attachPlayer(leeway, videojs as VideojsLike, player as PlayerLike, options);
}

/** Attaches what is known to be a player. */
function attachPlayer(leeway: Leeway, videojs: VideojsLike, player: PlayerLike, options: AttachOptions): () => void {
  const known = attached.get(player);
  if (known) return known;

  let vhs: VhsHandler | undefined;
  let playback: Playback | undefined;
  let unwrap: (() => void) | undefined;
  let media: HTMLMediaElement | null = null;
  /** Bits per second of the picture on the screen; 0: VHS has told of none yet. */
  let shown = 0;
  const caught = (where: string, error: unknown) => leeway.caught(`video.js ${where}`, error);
  const observer = observePlayback({
    clock: leeway.clock,
    bitrate(): number {
      const now = (vhs && media && bitrateAt(vhs, media.currentTime)) || shown;
      // VHS says which rendition it fetches from now on, and has others in the buffer until then.
      if (now !== shown) observer.switched();
      shown = now;
      return shown || (vhs?.playlists?.media()?.attributes?.BANDWIDTH ?? 0);
    },
    paused: (paused) => playback?.setPaused(paused),
    started: () => playback?.onCollect?.(),
    caught,
  });
  const close = () => {
    unwrap?.();
    observer.detach();
    playback?.close();
    unwrap = vhs = playback = undefined;
  };
  /** A source has been set, and VHS is there for it, or something else is. */
  const look = () => {
    const tech = player.tech(true);
    const found = tech?.vhs;
    if (found === vhs) return;
    close();
    if (!found || !/mpegurl/i.test(found.source_.type ?? '')) return;
    vhs = found;
    media = tech.el() as HTMLMediaElement | null;
    shown = 0;
    const opened = leeway.open(new URL(found.source_.src, document.baseURI).href, options);
    playback = opened;
    opened.onCollect = () => opened.observe(observer.take());
    observer.begin();
    if (media) observer.attach(media);
    const { useNetworkInformationApi: before = true } = found.options_;
    // VHS has others as it takes the source, and whenever a page sets one.
    const useBrowser = (on: boolean) => {
      found.options_.useNetworkInformationApi = on;
    };
    const restore = wrap(found, (asked) => {
      const place = placeOf(found, asked);
      // Until then VHS chooses as without the library, its first rendition above all.
      return place && { vhs: found, media, place, playback: opened, ownSamples: () => useBrowser(false), caught };
    });
    unwrap = () => {
      restore();
      useBrowser(before);
    };
  };
  const listeners: Record<string, () => void> = {
    // Behind VHS's request for the playlist: a title that is made and joined takes the page's thread. VHS asks for no segment before that.
    loadstart: look,
    // It has no source any more.
    playerreset: look,
    dispose: () => detach(),
  };
  for (const [event, f] of Object.entries(listeners)) {
    listeners[event] = () => {
      try {
        f();
      } catch (error) {
        caught('event', error);
      }
    };
    player.on(event, listeners[event]!);
  }
  const release = use(videojs, leeway);
  listeners.loadstart!();

  const detach = () => {
    if (!attached.delete(player)) return;
    for (const [event, f] of Object.entries(listeners)) player.off(event, f);
    close();
    release();
  };
  attached.set(player, detach);
  return detach;
}

/**
 * Attaches every player of a Video.js, those that exist already and those to come. Returns a function that undoes it. Throws a
 * `TypeError` if it is given something else.
 */
export function attachVideojsAll(leeway: Leeway, videojs: VideojsNamespace, options: AttachOptions = {}): () => void {
  if (!isVideojs(videojs)) {
    throw new TypeError('attachVideojsAll needs Video.js 8 with VHS: window.videojs.');
  }
  const like = videojs as VideojsLike;
  const detachers = new Set<() => void>();
  const attach = (player: PlayerLike) => {
    try {
      const detach = attachPlayer(leeway, like, player, options);
      detachers.add(detach);
      // Players that are gone are not kept for the sake of a later undo.
      player.on('dispose', () => detachers.delete(detach));
    } catch (error) {
      leeway.caught('video.js attach', error);
    }
  };
  like.hook('setup', attach);
  for (const player of like.getAllPlayers()) attach(player);
  return () => {
    like.removeHook('setup', attach);
    for (const detach of detachers) detach();
    detachers.clear();
  };
}
