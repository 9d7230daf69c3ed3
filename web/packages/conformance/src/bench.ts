/** What the kit needs around it: browsers, an origin, a running Leeway. The end-to-end suite has them all. */

import type { BrowserName } from './adapter.ts';

/** A page of a browser under remote control, as puppeteer has them. */
export interface KitPage {
  goto(url: string): Promise<unknown>;
  // biome-ignore lint/suspicious/noExplicitAny: arguments go through as JSON
  evaluate<T, A extends any[]>(f: (...args: A) => T, ...args: A): Promise<Awaited<T>>;
  close(): Promise<void>;
}

export interface KitBrowser {
  name: BrowserName;
  /** An empty window with a cache and a storage of its own. */
  window(): Promise<KitPage>;
}

/** Which program asked: the first or the second viewer of a cell, or a server of Leeway. */
export type Asker = 'host' | 'guest' | 'server';

export interface OriginRequest {
  asker: Asker;
  method: string;
  path: string;
  query: string;
  /** Its headers of Common Media Client Data, with commas between them; empty: none. */
  cmcd: string;
  status: number;
  /** Of the body, as far as it went. */
  bytes: number;
}

/** Some requests that the origin does not answer well. */
export interface Fault {
  path: RegExp;
  askers: Asker[];
  /** Instead of the answer. */
  status?: number;
  /** Bytes per second of the body. */
  rate?: number;
  /** How often; without it until the fault is taken away. */
  times?: number;
}

/** The body of an origin's answer: all of it at once, or pieces of it as they are made. */
export type Body = Buffer | AsyncIterable<Buffer>;

/** An HTTP origin on which viewers have a host name or port each, for the same paths. */
export interface KitOrigin {
  url(path: string, asker: Asker): string;
  /** Answers what lies below a prefix; undefined: 404. Returns what takes it away again. */
  mount(prefix: string, answer: (path: string, query: URLSearchParams) => Promise<Body | undefined>): () => void;
  /** What has been asked for below a prefix, so far. */
  requests(prefix: string): OriginRequest[];
  /** Returns what takes it away again. */
  fault(fault: Fault): () => void;
}

export interface Bench {
  browser: KitBrowser;
  origin: KitOrigin;
  /** Base URL of the tracker and of the drop-in (`http://host:port`), whose site has the origin's hosts. */
  tracker: string;
  /** Folder of the fixtures: `fixturesDir()`. */
  fixtures: string;
}
