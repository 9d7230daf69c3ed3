/** Leeway as this page sees it: through `window.leeway` alone, as any site would. */

import type { Leeway, LeewayStats, Notice, Reason, Source } from '@leeway/core';

export type { Notice, Reason, Source };

/** One open link. Counters are bytes since it opened. */
export interface LinkView {
  peer: string;
  role: 'viewer' | 'seed';
  path: 'direct' | 'relay';
  downloaded: number;
  uploaded: number;
  rttMs: number;
}

/** What the page shows of Leeway at one moment. */
export interface DeliveryView {
  script: 'loading' | 'left-out' | 'absent' | 'present';
  state: 'connecting' | 'connected' | 'reconnecting' | 'off';
  /** Own peer ID, or undefined before the first session. */
  self: string | undefined;
  notice: Notice | undefined;
  reason: Reason | undefined;
  /** Attempts to link have failed lately, though a seed is linked or the network is known to block them. */
  struggling: boolean;
  links: LinkView[];
  /** Verified bytes by source; those that a TURN server relayed are in `relayed` too. */
  bytes: Record<Source, number>;
  relayed: number;
  given: number;
}

/** How a segment came, by the library's `segment` event. */
export interface SegmentView {
  url: string;
  startMs: number;
  durationMs: number;
  source: Source;
  reason: Reason | undefined;
  bytes: Record<Source, number>;
}

/** Notices after which nothing comes from peers for good. */
const finalNotices = new Set<string>([
  'insecure-context',
  'no-webrtc',
  'no-webcrypto',
  'private-tracker',
  'tracker-refused',
  'token-refused',
  'no-player',
]);

/** Reasons that the network gives, which the sentence explains; with the others it is off by decision. */
const networkReasons = new Set<Reason>(['udp-blocked', 'symmetric-nat', 'lna-denied']);

/** For how long a failed attempt to link says something about now. */
const failureCountsMs = 30_000;

/** Follows the library from before it has loaded. */
export class Delivery {
  onSegment: ((segment: SegmentView) => void) | undefined;
  onNotice: ((notice: Notice) => void) | undefined;
  private readonly wanted: boolean;
  private readonly loaded: () => boolean;
  private library: Leeway | undefined;
  private connectedOnce = false;
  private failures = 0;
  private failedAt = Number.NEGATIVE_INFINITY;

  /** `wanted`: the page has the script; `loaded`: false once it is known that it did not load. */
  constructor(wanted: boolean, loaded: () => boolean) {
    this.wanted = wanted;
    this.loaded = loaded;
    this.attach();
  }

  /** Reads the library's figures; before it is there, says so. */
  view(): DeliveryView {
    this.attach();
    const view: DeliveryView = {
      script: this.script(),
      state: 'connecting',
      self: undefined,
      notice: undefined,
      reason: undefined,
      struggling: false,
      links: [],
      bytes: { origin: 0, seed: 0, peer: 0 },
      relayed: 0,
      given: 0,
    };
    if (this.library !== undefined) this.read(this.library.stats(), view);
    return view;
  }

  private script(): DeliveryView['script'] {
    if (!this.wanted) return 'left-out';
    if (this.library !== undefined) return 'present';
    return this.loaded() ? 'loading' : 'absent';
  }

  private attach(): void {
    const { leeway } = window;
    if (this.library !== undefined || leeway === undefined) return;
    this.library = leeway;
    leeway.on('notice', (notice) => this.onNotice?.(notice));
    leeway.on('segment', ({ url, startMs, durationMs, result }) => {
      this.onSegment?.({
        url,
        startMs,
        durationMs,
        source: result.source,
        reason: result.reason,
        bytes: { ...result.bytes },
      });
    });
  }

  private read(stats: LeewayStats, view: DeliveryView): void {
    if (stats.state === 'ready') this.connectedOnce = true;
    view.self = stats.self ?? undefined;
    view.notice = stats.notice ?? undefined;
    let failures = 0;
    for (const title of stats.titles) {
      failures += (title.linkFailures.timeout ?? 0) + (title.linkFailures['lna-denied'] ?? 0);
      failures += title.linkFailures['udp-blocked'] ?? 0;
      view.reason ??= title.off ?? undefined;
      const { bytes, uploaded } = title.totals;
      view.bytes.origin += bytes.origin;
      view.bytes.seed += bytes.seed + bytes.seed_relay;
      view.bytes.peer += bytes.peer + bytes.peer_relay;
      view.relayed += bytes.peer_relay;
      view.given += uploaded.direct + uploaded.relay;
      for (const { peer, role, path, downloaded, uploaded, rttMs } of title.engine?.peers ?? []) {
        view.links.push({ peer, role, path, downloaded, uploaded, rttMs });
      }
    }
    const now = performance.now();
    if (failures > this.failures) this.failedAt = now;
    this.failures = failures;
    const seeded = view.links.some((link) => link.role === 'seed');
    view.struggling = now - this.failedAt < failureCountsMs && (seeded || view.reason !== undefined);
    view.state = this.state(stats, view);
  }

  private state(stats: LeewayStats, view: DeliveryView): DeliveryView['state'] {
    const final = stats.notice !== null && finalNotices.has(stats.notice.code);
    if (stats.state === 'off' || stats.state === 'stopped' || final) return 'off';
    if (stats.state === 'waiting') return this.connectedOnce || stats.notice !== null ? 'reconnecting' : 'connecting';
    if (stats.state !== 'ready') return this.connectedOnce ? 'reconnecting' : 'connecting';
    return view.reason !== undefined && !networkReasons.has(view.reason) ? 'off' : 'connected';
  }
}
