/** What the kit has to know of a player: how a page loads it, and how it plays one manifest. */

import type { CaseName } from './names.ts';

export type BrowserName = 'Chromium' | 'Firefox';
export type Format = 'hls' | 'dash';

/** A media response as the player was given it, from whatever source. */
export interface Received {
  url: string;
  /** Of a range request: `bytes=first-last`, or both ends, the last inclusive. */
  range?: string;
  data: ArrayBuffer | ArrayBufferView;
}

/** What `Adapter.play` is given in the page, for one player. */
export interface Stage {
  /** Holds the adapter's markup. */
  root: HTMLElement;
  /** Absolute URL. */
  manifest: string;
  /** Seconds that the player shall buffer ahead, as far as it can be told. */
  buffer: number;
  /** Common Media Client Data, version 2: where; empty: none. */
  cmcd: '' | 'query' | 'headers';
  /** The presentation has parts of segments. */
  lowLatency: boolean;
  /** The presentation is encrypted: where the license is asked for, and what it says (both hex). */
  clearKey?: { license: string; id: string; key: string };
  /** Has the kit watch an element; needed only where it is not under `root`, or in a shadow tree. */
  watch(video: HTMLVideoElement): void;
  /** To be called for every media segment that the player is given, before it changes the bytes. */
  received(media: Received): void;
  /** To be called for every error that the player tells a page of. */
  error(code: string, fatal: boolean): void;
}

/** A script of the page. */
export interface Script {
  /** File on this machine. */
  file: string;
  /** It is an ECMAScript module. */
  module?: boolean;
}

/** A row of the kit. */
export interface Adapter {
  /** Player and version, as the table names it. */
  name: string;
  format: Format;
  /** Of the page, in order, beside Leeway's drop-in. */
  scripts: Script[];
  /** Style sheets of the page: files on this machine. */
  styles?: string[];
  /** What `root` holds; without it one `<video muted playsinline>`. */
  markup?: string;
  /** The page has no tag of the drop-in: it ties the library in itself, and has the tracker's address in `data-tracker` of `<html>`. */
  ownLibrary?: boolean;
  /** The drop-in has to be there before a player is made: its tag has no `async`, and stands ahead of the adapter's scripts. */
  early?: boolean;
  /** In low latency it asks for parts of segments, and the library hears that they are: viewers share them. */
  parts?: boolean;
  /**
   * Starts one player. Runs in the page: it is passed as source text, and uses nothing from outside. May return a promise; a
   * rejection counts as a fatal error of the player.
   */
  play(stage: Stage): unknown;
  /** Cases that this player does not pass by no fault of Leeway, each with the reason or the upstream issue; for one browser: `case in Firefox`. */
  skips?: Partial<Record<CaseName | `${CaseName} in ${BrowserName}`, string>>;
}

/** Checks the shape of an adapter. Throws a `TypeError` that says what is wrong. */
export function defineAdapter(adapter: Adapter): Adapter {
  const { name, format, scripts, play } = adapter;
  if (!name) throw new TypeError('conformance: an adapter needs a name: the player and its version.');
  if (format !== 'hls' && format !== 'dash') {
    throw new TypeError(`conformance: ${name}: format is "hls" or "dash", not ${JSON.stringify(format)}.`);
  }
  if (!Array.isArray(scripts)) throw new TypeError(`conformance: ${name}: scripts is a list of files.`);
  if (typeof play !== 'function') throw new TypeError(`conformance: ${name}: play(stage) starts the player.`);
  return adapter;
}
