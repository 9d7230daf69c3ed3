/** Ties one Shaka player to the library, and unties it. */

import { type Leeway, observePlayback, type Playback } from '@leeway/core';
import { ownPlugin } from './fetching.ts';
import { type Asked, createPlugin, ours } from './loader.ts';
import { bitrateShown } from './position.ts';
import {
  isShaka,
  type PlayerLike,
  type RequestFilter,
  type ShakaLike,
  type ShakaNamespace,
  type ShakaPlayer,
  type ShakaRequest,
} from './shaka.ts';

export interface AttachOptions {
  /** Explicit title of what this player plays. */
  title?: string;
}

const attached = new WeakMap<PlayerLike, () => void>();
/** Written by the filter of a player, read by the plug-in of all of them. */
const asks = new WeakMap<ShakaRequest, Asked>();
/** How many attached players need the plug-in of their Shaka. */
const users = new WeakMap<ShakaLike, number>();

/**
 * Has the plug-in in place of Shaka's own while a player needs it. A page's own plug-in has a higher priority by default, and stays; one of
 * the same priority cannot be told from Shaka's own.
 */
function use(shaka: ShakaLike, leeway: Leeway, change: 1 | -1): void {
  const count = (users.get(shaka) ?? 0) + change;
  users.set(shaka, count);
  // The first one, or none any more.
  if (count && count !== change) return;
  const { NetworkingEngine } = shaka.net;
  const plugin = count ? createPlugin(shaka, leeway.clock, (request) => asks.get(request)) : ownPlugin(shaka);
  for (const scheme of ['http', 'https'])
    NetworkingEngine.registerScheme(scheme, plugin, NetworkingEngine.PluginPriority.PREFERRED, !count);
}

/**
 * Lets a player of Shaka 5 share the segments of its playbacks, HLS and DASH. Its settings and filters stay as they are;
 * manifests, keys and licences are not touched. Returns a function that takes the plug-in out again. Throws a
 * `TypeError` if it is given something else.
 */
export function attachShaka(
  leeway: Leeway,
  shaka: ShakaNamespace,
  player: ShakaPlayer,
  options: AttachOptions = {},
): () => void {
  if (typeof leeway?.open !== 'function') {
    throw new TypeError('attachShaka(leeway, shaka, player) needs what createLeeway() returned first.');
  }
  if (!isShaka(shaka)) {
    throw new TypeError(
      'attachShaka(leeway, shaka, player) needs the namespace of Shaka Player 5 second: window.shaka.',
    );
  }
  if (!(player as Partial<PlayerLike> | undefined)?.getNetworkingEngine?.()) {
    throw new TypeError('attachShaka(leeway, shaka, player) needs a player that lives: new shaka.Player().');
  }
  return attachPlayer(leeway, shaka as ShakaLike, player as PlayerLike, options);
}

/** Attaches what is known to be a player. */
function attachPlayer(leeway: Leeway, shaka: ShakaLike, player: PlayerLike, options: AttachOptions): () => void {
  const known = attached.get(player);
  if (known) return known;

  const caught = (where: string, error: unknown) => leeway.caught(`shaka ${where}`, error);
  let playback: Playback | undefined;
  let loads = 0;
  let pictured = false;
  /** Links begin when the core hears of the picture. They would take the page's thread from the segment that Shaka's first choice is by. */
  const tell = guarded(() => {
    if (!pictured || loads) return;
    pictured = false;
    playback?.onCollect?.();
  }, caught);
  const observer = observePlayback({
    clock: leeway.clock,
    bitrate: () => bitrateShown(player),
    paused: (paused) => playback?.setPaused(paused),
    started() {
      pictured = true;
      tell();
    },
    caught,
  });
  const close = () => {
    playback?.close();
    playback = undefined;
  };
  /** Seeds read HLS and DASH; what they do not read is not shared. */
  const open = () => {
    const asset = player.getAssetUri();
    if (!asset || !/HLS|DASH/.test(player.getManifestType()!)) return;
    // As the page gave it: relative to the page, it may be.
    const { href } = new URL(asset, document.baseURI);
    if (playback?.manifest === href) return;
    close();
    playback = leeway.open(href, options);
    const opened = playback;
    opened.onCollect = () => opened.observe(observer.take());
  };
  const watch = () => {
    const media = player.getMediaElement();
    if (media) observer.attach(media);
  };

  const listeners: Record<string, (event: unknown) => void> = {
    loading() {
      close();
      // Shaka gives its player of interstitials the filters of the main one, too. The one that notes a request last is heard.
      engine.unregisterRequestFilter(filter);
      engine.registerRequestFilter(filter);
      observer.begin();
      watch();
    },
    manifestparsed: open,
    loaded: open,
    unloading() {
      observer.detach();
      close();
    },
    adaptation: observer.switched,
    variantchanged: observer.switched,
  };
  for (const [event, f] of Object.entries(listeners)) {
    listeners[event] = guarded(f, caught);
    player.addEventListener(event, listeners[event]!);
  }
  const moved = (change: 1 | -1) => {
    loads += change;
    tell();
  };
  const filter: RequestFilter = (_type, request, context) => {
    const segment = ours(context);
    if (segment) asks.set(request, { player, context: segment, playback: () => playback, moved, caught });
  };
  const engine = player.getNetworkingEngine()!;
  engine.registerRequestFilter(filter);
  use(shaka, leeway, 1);
  open();
  watch();

  const detach = () => {
    if (!attached.delete(player)) return;
    for (const [event, f] of Object.entries(listeners)) player.removeEventListener(event, f);
    engine.unregisterRequestFilter(filter);
    use(shaka, leeway, -1);
    observer.detach();
    close();
  };
  attached.set(player, detach);
  return detach;
}

function guarded(
  f: (event: unknown) => void,
  caught: (where: string, error: unknown) => void,
): (event?: unknown) => void {
  return (event) => {
    try {
      f(event);
    } catch (error) {
      caught('event', error);
    }
  };
}

/**
 * Attaches every player of a Shaka, including those that exist already: each is attached when its next event passes.
 * Returns a function that undoes it. Throws a `TypeError` if it is given something else.
 */
export function attachShakaClass(leeway: Leeway, shaka: ShakaNamespace, options: AttachOptions = {}): () => void {
  if (!isShaka(shaka)) throw new TypeError('attachShakaClass needs the namespace of Shaka Player 5: window.shaka.');
  const like = shaka as ShakaLike;
  const { prototype } = like.Player;
  const { dispatchEvent } = prototype;
  const detachers = new Map<PlayerLike, () => void>();
  let active = true;
  const wrapped = function (this: PlayerLike, event: unknown): boolean {
    try {
      if (active && !attached.has(this) && this.getNetworkingEngine()) {
        // Players that are gone are not kept for the sake of a later undo.
        for (const [player, detach] of detachers) {
          if (player.getNetworkingEngine()) continue;
          detach();
          detachers.delete(player);
        }
        detachers.set(this, attachPlayer(leeway, like, this, options));
      }
    } catch (error) {
      leeway.caught('shaka attach', error);
    }
    return dispatchEvent.call(this, event);
  };
  prototype.dispatchEvent = wrapped;
  return () => {
    active = false;
    // A later wrapper of another script keeps calling ours, which then only passes on.
    if (prototype.dispatchEvent === wrapped) prototype.dispatchEvent = dispatchEvent;
    for (const detach of detachers.values()) detach();
    detachers.clear();
  };
}
