/** Ties one hls.js player to the library, and unties it. */

import { type Leeway, observePlayback, type Playback } from '@leeway/core';
import { destroying, type HlsClass, type HlsLike, type HlsPlayer, type LoaderConstructor } from './hls.ts';
import { wrapLoader } from './loader.ts';

export interface AttachOptions {
  /** Explicit title of what this player plays. */
  title?: string;
}

/** Where all events of all players of a class pass. */
interface Triggering {
  trigger(event: string, data: unknown): boolean;
}

const attached = new WeakMap<HlsLike, () => void>();

/**
 * Lets an hls.js player (any build since 1.5) share its segments. Its loader settings stay as they are; playlists and
 * keys are not touched; `startFragPrefetch` is on while it has a media element. Returns a function that gives the player
 * its own loader and settings back. Throws a `TypeError` if it is given something else.
 */
export function attachHls(leeway: Leeway, player: HlsPlayer, options: AttachOptions = {}): () => void {
  if (typeof leeway?.open !== 'function') {
    throw new TypeError('attachHls(leeway, hls) needs what createLeeway() returned first.');
  }
  if (isHlsClass(player)) {
    throw new TypeError(
      'attachHls(leeway, hls) needs a player, not the class: new Hls(), or attachHlsClass(leeway, Hls).',
    );
  }
  const { config, on, off } = (player ?? {}) as Partial<HlsLike>;
  if (!config?.loader || !on || !off) {
    throw new TypeError(
      'attachHls(leeway, hls) needs a player of hls.js, 1.5 or newer: this has no config.loader, on, off.',
    );
  }
  return attachPlayer(leeway, player as HlsLike, options);
}

/** Attaches what is known to be a player. */
function attachPlayer(leeway: Leeway, hls: HlsLike, options: AttachOptions): () => void {
  const known = attached.get(hls);
  if (known) return known;

  let playback: Playback | undefined;
  const caught = (where: string, error: unknown) => leeway.caught(`hls.js ${where}`, error);
  const observer = observePlayback({
    clock: leeway.clock,
    bitrate: () => hls.levels[hls.currentLevel]?.bitrate ?? 0,
    lag() {
      const shown = hls.levels[hls.currentLevel]?.details?.live && hls.playingDate;
      return shown ? Date.now() - shown.getTime() : 0;
    },
    paused: (paused) => playback?.setPaused(paused),
    started: () => playback?.onCollect?.(),
    caught,
  });
  const open = (url: string | null) => {
    if (!url || playback?.manifest === url) return;
    playback?.close();
    playback = leeway.open(url, options);
    const opened = playback;
    opened.onCollect = () => opened.observe(observer.take());
  };

  // Events by name, as they have been since 1.0: importing them would import hls.js.
  const listeners: Record<string, (event: string, data: never) => void> = {
    hlsManifestLoading() {
      observer.begin();
      open(hls.url);
    },
    hlsMediaAttaching: () => attach(),
    hlsMediaDetaching: () => release(),
    hlsLevelSwitched: observer.switched,
    [destroying]: () => detach(),
  };
  for (const [event, f] of Object.entries(listeners)) {
    listeners[event] = guarded(f, caught);
    hls.on(event, listeners[event]!);
  }

  const { config } = hls;
  const { startFragPrefetch, fLoader: before } = config;
  const attach = () => {
    if (!hls.media) return;
    observer.attach(hls.media);
    // A media source that opens after the playlist has come would make the player wait for its next look, 100 ms later.
    config.startFragPrefetch = true;
  };
  const release = () => {
    observer.detach();
    config.startFragPrefetch = startFragPrefetch;
  };
  const ours = wrapLoader(before ?? (config.loader as LoaderConstructor), {
    hls,
    clock: leeway.clock,
    playback: () => playback,
    caught,
  });
  config.fLoader = ours;
  open(hls.url);
  attach();

  const detach = () => {
    if (!attached.delete(hls)) return;
    for (const [event, f] of Object.entries(listeners)) hls.off(event, f);
    // Another script may have wrapped ours since; then it stays, and lets everything pass.
    if (config.fLoader === ours) config.fLoader = before;
    playback?.close();
    playback = undefined;
    release();
  };
  attached.set(hls, detach);
  return detach;
}

function guarded<A extends unknown[]>(
  f: (...args: A) => void,
  caught: (where: string, error: unknown) => void,
): (...args: A) => void {
  return (...args) => {
    try {
      f(...args);
    } catch (error) {
      caught('event', error);
    }
  };
}

/**
 * Attaches every player of an hls.js class, those that exist already (at their next event) and those to come.
 * Returns a function that undoes it for all of them.
 */
export function attachHlsClass(leeway: Leeway, hlsClass: HlsClass, options: AttachOptions = {}): () => void {
  if (!isHlsClass(hlsClass)) throw new TypeError('attachHlsClass needs the class Hls.');
  const prototype = hlsClass.prototype as Triggering;
  const { trigger } = prototype;
  const detachers = new Set<() => void>();
  let active = true;
  const wrapped = function (this: HlsLike, event: string, data: unknown): boolean {
    // A player of I-frames (hls.js 1.7) shows thumbnails: it is no viewer, and seeds know none of what it loads.
    if (active && !attached.has(this) && event !== destroying && !('loadMediaAt' in this)) {
      try {
        const detach = attachPlayer(leeway, this, options);
        detachers.add(detach);
      } catch (error) {
        leeway.caught('hls.js attach', error);
      }
    }
    const detach = attached.get(this);
    const result = trigger.call(this, event, data);
    if (event === destroying) {
      // Players that are gone are not kept for the sake of a later undo, nor attached anew: they lose their media after this event.
      detachers.delete(detach!);
      attached.set(this, detach!);
    }
    return result;
  };
  prototype.trigger = wrapped;
  return () => {
    active = false;
    // A later wrapper of another script keeps calling ours, which then only passes on.
    if (prototype.trigger === wrapped) prototype.trigger = trigger;
    for (const detach of detachers) detach();
    detachers.clear();
  };
}

/** Whether a value is an hls.js class that this plug-in can work with. */
export function isHlsClass(value: unknown): value is HlsClass {
  return typeof value === 'function' && typeof value.prototype?.trigger === 'function';
}
