/** Ties players of dash.js to the library, and unties them. */

import { type Leeway, observePlayback, type Playback } from '@leeway/core';
import type { DashNamespace, DashPlayer, FragmentRequest, PlayerLike, Rendered, Throughput } from './dashjs.ts';
import { instead, known } from './loader.ts';
import { type Found, type Met, meet, prepare } from './meet.ts';

export interface AttachOptions {
  /** Explicit title of what this player plays. */
  title?: string;
}

const prepared = new WeakMap<DashPlayer, Met>();
const attached = new WeakMap<DashPlayer, () => void>();

/** Attaches a player that was prepared. */
function attachMet(leeway: Leeway, met: Met, options: AttachOptions = {}): () => void {
  const player = met.player as PlayerLike;
  const before = attached.get(player);
  if (before) return before;
  let playback: Playback | undefined;
  /** Bits per second of the picture on the screen; 0: dash.js has told of none yet. */
  let shown = 0;
  const caught = (where: string, error: unknown) => leeway.caught(`dashjs ${where}`, error);
  const observer = observePlayback({
    clock: leeway.clock,
    bitrate: () => shown || known(() => player.getCurrentRepresentationForType('video')?.bandwidth) || 0,
    paused: (paused) => playback?.setPaused(paused),
    started: () => playback?.onCollect?.(),
    caught,
  });
  const measure = (throughput: Throughput) => player.updateSettings({ streaming: { abr: { throughput } } });
  const { useResourceTimingApi, useNetworkInformationApi } = player.getSettings().streaming.abr.throughput;
  // dash.js changes what it hands out.
  const own = { useResourceTimingApi, useNetworkInformationApi: { ...useNetworkInformationApi } };
  const close = () => {
    observer.detach();
    playback?.close();
    playback = undefined;
  };
  const watch = () => {
    observer.begin();
    const media = known(() => player.getVideoElement());
    if (media) observer.attach(media);
  };
  const opens = () => {
    const source = known(() => player.getSource());
    if (typeof source !== 'string') return;
    // As the page gave it: relative to the page, it may be.
    const { href } = new URL(source, document.baseURI);
    if (playback?.manifest === href) return;
    close();
    // Both would tell the estimate of other bytes than the loader does.
    measure({ useResourceTimingApi: false, useNetworkInformationApi: { xhr: false, fetch: false } });
    shown = 0;
    watch();
    playback = leeway.open(href, options);
    const opened = playback;
    opened.onCollect = () => opened.observe(observer.take());
  };
  /** URLs as the MPD has them. CMCD writes into them later, and writes the rest of a query anew: `%20` becomes `+`. */
  const urls = new WeakMap<FragmentRequest, string>();
  const listeners: Record<string, (event: never) => void> = {
    fragmentLoadingStarted({ request }: { request: FragmentRequest }) {
      if (!urls.has(request)) urls.set(request, request.url);
    },
    streamTeardownComplete: close,
    /** It is told of sound too, and of the first rendition of each period. */
    qualityChangeRendered({ mediaType, newRepresentation: { bandwidth } }: Rendered) {
      if (mediaType !== 'video' || bandwidth === shown) return;
      shown = bandwidth;
      observer.switched();
    },
    // It has a view. What was loaded before, by `preload()`, waited for it, and not for the line.
    playbackInitialized: watch,
  };
  const listen = (how: 'on' | 'off') => {
    for (const type in listeners) player[how](type, listeners[type]!);
  };
  listen('on');
  const context = {
    player,
    clock: leeway.clock,
    caught,
    opens,
    urls,
    playback() {
      // One that has read its MPD before it was attached.
      if (!playback) opens();
      return playback;
    },
  };
  met.instead = instead(context);
  const detach = () => {
    if (!attached.delete(player)) return;
    met.instead = undefined;
    listen('off');
    close();
    measure(own);
  };
  attached.set(player, detach);
  // One that plays already has its MPD, or waits for it. Its first segment does not wait for a title then.
  if (known(() => player.getVideoElement())) known(opens);
  return detach;
}

/**
 * Lets a player of dash.js 5 share its playbacks. It has to be attached before it loads anything: right after
 * `dashjs.MediaPlayer().create()` and what the page extends of it. Keys and licenses are not touched. Returns a function that detaches
 * it. Throws a `TypeError` if it is given something else.
 */
export function attachDashjs(leeway: Leeway, player: DashPlayer, options: AttachOptions = {}): () => void {
  if (typeof leeway?.open !== 'function') {
    throw new TypeError('attachDashjs(leeway, player) needs what createLeeway() returned first.');
  }
  if (typeof (player as Partial<DashPlayer> | undefined)?.extend !== 'function') {
    throw new TypeError('attachDashjs(leeway, player) needs a player of dash.js 5: dashjs.MediaPlayer().create().');
  }
  const met: Met = prepared.get(player) ?? { player };
  if (!prepared.has(player)) prepare(met);
  prepared.set(player, met);
  return attachMet(leeway, met, options);
}

/** Attaches the players that were met, and later ones. Returns a function that undoes it. */
export function attachFound(leeway: Leeway, found: Found, options: AttachOptions = {}): () => void {
  // Players that are gone are not kept for the sake of a later undo.
  const players: WeakRef<DashPlayer>[] = [];
  found.onMet = (met) => {
    known(
      () => {
        attachMet(leeway, met, options);
        players.push(new WeakRef(met.player));
      },
      (_, error) => leeway.caught('dashjs attach', error),
    );
  };
  found.met.splice(0).forEach(found.onMet);
  return () => {
    found.onMet = undefined;
    found.leave();
    for (const player of players) attached.get(player.deref()!)?.();
  };
}

/**
 * Attaches every player that is made by `dashjs.MediaPlayer()` from now on; `dashjs` is `window.dashjs`. Returns a function
 * that undoes it. Throws a `TypeError` if it is given something else.
 */
export function attachDashjsClass(leeway: Leeway, dashjs: DashNamespace, options: AttachOptions = {}): () => void {
  const found = meet(dashjs);
  if (!found) throw new TypeError('attachDashjsClass needs the namespace of dash.js 5: window.dashjs.');
  return attachFound(leeway, found, options);
}
