/** What the test page is asked for, and what it records. */

/** How the test page is put together; travels in its query string. */
export interface PageOptions {
  /** Tracker's base URL (http://host:port); without it the page has no Leeway. */
  tracker?: string;
  /** Where the drop-in's tag stands with respect to hls.js. */
  order?: 'before' | 'after';
  /** Another player than hls.js (page.ts has the table), or none. */
  player?: 'hls' | 'shaka' | 'dashjs' | 'videojs' | 'none';
  /** Rendition by index in the manifest; -1: the player chooses. */
  level?: number;
  manifest?: string;
  /** Seconds that the player buffers ahead. */
  buffer?: number;
  /** How long the player waits for a segment's first byte, in ms. */
  firstByteMs?: number;
  /** The drop-in's URL, where it is not the tracker's own copy. */
  script?: string;
  /** Further attributes of the drop-in's tag. */
  attributes?: string;
  /** A header that the player's requests carry by its own xhrSetup: each is asked for by a preflight. */
  header?: string;
  /** The player writes CMCD into its requests and reports to the tracker, as docs/embedding.md has it. */
  cmcd?: boolean;
  /** Content security policy; every script of the page has the nonce `e2e` then. */
  policy?: string;
  /** Further headers of the page's answer. */
  headers?: Record<string, string>;
}

/** What the page's own script records about the player; see Viewer.player(). */
export interface Player {
  level: number;
  estimate: number;
  /** Levels of the fragments as they were played, with their durations in seconds. */
  played: { level: number; bitrate: number; duration: number; at: number }[];
  /**
   * Of hls.js and Video.js: segments in the order in which it asked, with its estimate then; ms to the first byte and from it to the
   * last; what it gave up.
   */
  asked?: {
    sn: number | string;
    level: number;
    at: number;
    kbps: number;
    took?: number[];
    gaveUp?: { at: number; loaded: number; total: number };
  }[];
  /** URL, length and SHA-256 of every media response that the player was given. */
  loaded: { url: string; length: number; digest: string }[];
  errors: { type: string; details: string; fatal: boolean; code: number }[];
}

/** What the library told the page, by its events. */
export interface Told {
  notices: { code: string; message: string; hint: string }[];
  links: { peer: string; role: string; at: number }[];
  unlinks: { peer: string; role: string; reason: string; banned: boolean; at: number }[];
  segments: {
    url: string;
    source: string;
    reason?: string;
    bytes: { origin: number; seed: number; peer: number };
    at: number;
  }[];
  contradictions: number;
}

/** The page's globals. Not declared globally: the demo's own declarations share the program. */
export interface PageWindow {
  // biome-ignore lint/suspicious/noExplicitAny: the page's hls.js, untyped here
  Hls: any;
  // biome-ignore lint/suspicious/noExplicitAny: the library's public face, checked by its own tests
  leeway: any;
  // biome-ignore lint/suspicious/noExplicitAny: the demo's handle for tests
  __demo: any;
  // biome-ignore lint/suspicious/noExplicitAny: the page's player, untyped here
  __hls: any;
  __player: () => Promise<Player>;
  __told: Told;
}
