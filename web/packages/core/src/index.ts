/**
 * Leeway's core: peer-assisted delivery of media segments. Three lines join a player to it:
 *
 * ```ts
 * const leeway = createLeeway({ tracker: 'wss://tracker.example.com' });
 * leeway.start();
 * attachHls(leeway, hls); // from @leeway/hlsjs
 * ```
 */

import { browserEnvironment } from './browser/environment.ts';
import { createClient, type Leeway, type LeewayOptions } from './client.ts';
import { clear, loadEngine } from './load.ts';
import { SiteRules } from './segment/index.ts';

export type { Leeway, LeewayOptions, LeewayStats } from './client.ts';
export type { LeewayEvents, LeewayState, Notice, NoticeCode } from './events.ts';
export { deadlineMs, notStored, type ObserverOptions, observePlayback, type PlaybackObserver } from './media.ts';
export type { Loading, Observation, Playback, TitleSnapshot } from './playback.ts';
export type {
  ByteRange,
  Clock,
  EngineSnapshot,
  Growing,
  LinkCloseReason,
  LinkPath,
  OriginFetcher,
  OriginResult,
  PartRef,
  PartRequest,
  PeerRole,
  PeerSnapshot,
  ProgressFunction,
  Reason,
  SegmentRef,
  SegmentRequest,
  SegmentResult,
  Source,
  StatsDelta,
} from './ports.ts';
export { linkCloseReasons, reasons } from './ports.ts';
export type { FailReason } from './session/messages.ts';
export type { SessionCounters, TokenSource } from './session/session.ts';

/** The version of the library. */
export const version: string = '0.1.0';

/** Makes the library for this page. Nothing happens before `start()`. Throws a `TypeError` if no tracker is named. */
export function createLeeway(options: LeewayOptions): Leeway {
  if (!options?.tracker) throw new TypeError('createLeeway needs { tracker: "wss://…" }.');
  return createClient(options, {
    environment: browserEnvironment(),
    version,
    loadEngine,
    clear,
    rules: ({ site }) => new SiteRules(site),
  });
}
