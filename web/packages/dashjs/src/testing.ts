/** dash.js as tests need it. */

import { vi } from 'vitest';
import { FakeMedia, fakeLeeway, TestClock } from '../../hlsjs/src/testing.ts';
import { attachDashjs } from './attach.ts';
import type { CommonRequest, CommonResponse, Extension, FragmentRequest, Load } from './dashjs.ts';

export const manifest = 'https://a/film/m.mpd';
const template = { media: 'v$RepresentationID$/$Number%03d$.m4s', timescale: 10, duration: 40, startNumber: 3 };

/** A loader as dash.js has it: one request at a time, told by hand. */
export class FakeLoader {
  static made: FakeLoader[] = [];
  request!: CommonRequest;
  response!: CommonResponse;
  aborted = 0;
  /** Called as it is given a request. */
  sent?: () => void;
  constructor() {
    FakeLoader.made.push(this);
  }
  load: Load = (request, response) => {
    this.sent?.();
    request.customData.abort = () => this.abort();
    return Object.assign(this, { request, response });
  };
  abort(): void {
    this.aborted++;
  }
  answer(status: number, bytes: number, headers: Record<string, string> = {}): void {
    this.request.customData.onprogress?.({ loaded: bytes, total: bytes, lengthComputable: true });
    Object.assign(this.response, { status, headers, url: `${this.request.url}?at`, data: new ArrayBuffer(bytes) });
    this.request.customData.onloadend?.();
  }
}

/** A player with the extension points of dash.js, which merges the first extension of a name into the loader that it makes at first use. */
export class FakePlayer {
  media = new FakeMedia();
  source: string | object = manifest;
  settings = {
    streaming: {
      cacheLoadThresholds: { video: 10, audio: 5 },
      fragmentRequestProgressTimeout: -1,
      abr: {
        autoSwitchBitrate: { video: true },
        throughput: { useResourceTimingApi: true, useNetworkInformationApi: { xhr: true, fetch: true } },
      },
    },
  };
  loaders: Record<string, FakeLoader> = {};
  listeners: Record<string, () => void> = {};
  extend(name: string, child: Extension): void {
    if (name in this.loaders) return;
    let made: FakeLoader | undefined;
    const factory = { getClassFactoryByName: () => () => ({ create: () => new FakeLoader() }) };
    const make = () => {
      const parent = new FakeLoader();
      return Object.assign(parent, child.apply({ parent, factory }));
    };
    Object.defineProperty(this.loaders, name, { enumerable: true, get: () => (made ??= make()) });
  }
  initialize = () => {};
  getSource = () => this.source;
  getVideoElement = () => this.media as unknown as HTMLVideoElement;
  isDynamic = () => false;
  getSettings = () => this.settings;
  getCurrentRepresentationForType = () => ({ id: '1', bandwidth: 800_000 });
  getRepresentationsByType = () => [1, 2];
  /** What it hands out changes with it. */
  updateSettings({ streaming: { abr } }: FakePlayer['settings']): void {
    const { throughput } = this.settings.streaming.abr;
    throughput.useResourceTimingApi = abr.throughput.useResourceTimingApi;
    Object.assign(throughput.useNetworkInformationApi, abr.throughput.useNetworkInformationApi);
  }
  on = (event: string, f: (event: never) => void) => {
    this.listeners[event] = f as () => void;
  };
  off = (event: string) => {
    delete this.listeners[event];
  };
  /** As dash.js asks: CMCD may have changed the URL of the common request, and its headers. */
  ask(more: Partial<FragmentRequest> = {}, loader = 'XHRLoader', cmcd = false) {
    const manifest = { Period: [{ AdaptationSet: [{ Representation: [{ SegmentTemplate: template }] }] }] };
    const period = { index: 0, mpd: { manifest, availabilityStartTime: new Date(1_800_000_000_000) } };
    const request: FragmentRequest = {
      ...{ type: 'MediaSegment', mediaType: 'video', url: 'https://cdn/v1/005.m4s', range: null },
      ...{ startTime: 8, duration: 4, index: 2 },
      representation: { id: '1', bandwidth: 800_000, index: 0, adaptation: { index: 0, period } },
      ...more,
    };
    const customData = {
      ...{ request, onprogress: vi.fn(), onloadend: vi.fn(), onabort: vi.fn(), ontimeout: vi.fn() },
      abort: undefined as (() => void) | undefined,
    };
    const common: CommonRequest = {
      url: `${request.url}?CMCD=x`,
      method: 'GET',
      headers: { 'CMCD-Request': 'bl=(21300)' },
      timeout: 20_000,
      customData,
    };
    const response: CommonResponse = {};
    if (cmcd) {
      // It tells of the request before it writes into it, by the browser's own parameters.
      (this.listeners.fragmentLoadingStarted as unknown as (event: object) => void)({ request });
      const url = new URL(request.url);
      url.searchParams.set('CMCD', 'bl=21300,v=2');
      request.url = url.href;
    }
    this.loaders[loader]!.load(common, response);
    return { customData, response };
  }
}

/** A player, and what it can be attached to. */
export function setUp() {
  const clock = new TestClock();
  const player = new FakePlayer();
  const fake = fakeLeeway(clock);
  return { clock, player, ...fake, attach: () => attachDashjs(fake.leeway, player) };
}

/** What a segment is made of. */
export const bytes = (origin: number, peer: number) => ({ origin, seed: 0, peer });
