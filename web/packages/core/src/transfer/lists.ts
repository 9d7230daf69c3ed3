/** What packagers have signed of the playlists that are played (spec/packaging.md): loaded beside the media, one list at a time. */
import { type Certificate, listUrl, parseList, representationUrl } from '../certificate/index.ts';
import type { SegmentRequest } from '../ports.ts';
import { virtualLength } from '../segment/index.ts';
import { type Segment, wanted } from './segments.ts';
import { type Shared, sharing } from './shared.ts';

export interface ListsHost {
  /** An entry would verify if its signature is right. */
  counts(c: Certificate): boolean;
  /** This viewer has a use for lists. */
  useful(): boolean;
  /** A list has come. */
  came(): void;
}

export interface Lists {
  /** The short certificate of a segment, if a list has one that counts. */
  entry(s: Segment): Certificate | undefined;
  /**
   * No seed is to be asked for the segment: a list has it, or the player has not asked for it yet and the first list of its playlist
   * is on its way.
   */
  packaged(s: Segment): boolean;
  /** The length of an object that is too long to be signed whole, if a list has its first part. */
  long(s: Segment): number | undefined;
  /** An entry does not verify. */
  refuse(c: Certificate): void;
  /** The player asks for a segment of a playlist. The list is loaded once. */
  asked(s: Segment, request: Pick<SegmentRequest, 'playlist' | 'representation' | 'beside'>): void;
  /** The origin sent a segment that no list has. The list of its playlist is loaded again. */
  lacks(s: Segment): void;
  /** Gives up the load that runs. */
  stop(): void;
}

const mostBytes = 2 << 20;
/** Of so many playlists the list is kept. */
const mostLists = 8;
/** Between two loads of one list: half of a segment's duration, within these bounds, ms. */
const leastMs = 500;
const everyMs = 2_000;
/** The same after a load that brought nothing new: doubled with each further one, up to a bound, ms. */
const restMs = 5_000;
const mostRestMs = 600_000;
/** So long the first load of a list is waited for. */
const firstMs = 2_000;

/** A playlist's URL without what a player adds to each reload: in low latency (RFC 8216bis, section 6.2.5), and CMCD. */
export const plainUrl = (url: string): string =>
  url.replace(/\?.*/, (query) => query.replace(/[?&](_HLS_(msn|part|skip)|CMCD)=[^&#]*/g, '').replace(/^&/, '?'));

/** What is known of the list of one playlist. */
interface List {
  /** Fetches it: the newest request's, since a request of the player keeps its segment. */
  beside: SegmentRequest['beside'];
  entries: Map<string, Certificate>;
  /** At least once, whatever came of it. */
  loaded?: boolean;
  /** Not before. */
  againMs: number;
  /** Loads in a row that did not bring what they were made for, nor anything else that is new. */
  misses: number;
}

/** The URL of a media playlist, or what stands for it in an MPD. */
export const streamUrl = (playlist: string, representation?: string): string =>
  plainUrl(representation === undefined ? playlist : representationUrl(playlist, representation));

export const createLists = (shared: Shared, { counts, useful, came }: ListsHost): Lists => {
  const { clock, line, stats, settled, changed } = shared;
  /** By playlist, as their segments were asked for. */
  const lists = new Map<string, List>();
  let running: AbortController | undefined;
  /** So long seeds are not asked ahead of the player: a first load runs. */
  let untilMs = 0;
  /** The last list named what was not named before. */
  let grew = false;

  const find = (name: string) => {
    let found: Certificate | undefined;
    for (const { entries } of lists.values()) {
      const c = entries.get(name);
      if (c && counts(c)) found = c;
    }
    return found;
  };
  const entry = (s: Segment) => find(s.name);

  /** Of two entries for a name the one that was issued later holds: a cache may serve an older list. */
  const take = (list: List, data: Uint8Array) => {
    const parsed = data.length > mostBytes ? undefined : parseList(data);
    if (!parsed) return false;
    const was = list.entries;
    grew = parsed.some((c) => !was.has(c.name));
    list.entries = new Map(
      parsed.map((c) => {
        const old = was.get(c.name);
        return [c.name, old && old.issuedAt > c.issuedAt ? old : c];
      }),
    );
    return true;
  };

  /** Loads a list for the sake of a segment. */
  const load = (list: List, s: Segment) => {
    const { beside } = list;
    if (!beside || running || !sharing(shared) || !useful() || clock.now() < list.againMs) return;
    const abort = new AbortController();
    running = abort;
    let seen = 0;
    const end = (data?: Uint8Array) => {
      if (running !== abort) return;
      running = undefined;
      list.loaded = true;
      if (data) stats.count('list_bytes', data.length);
      const good = data && take(list, data);
      stats.count(good ? 'lists' : 'lists_failed');
      const missed = !good || !(entry(s) || grew);
      const rest = missed
        ? Math.min(restMs * 2 ** list.misses, mostRestMs)
        : Math.min(everyMs, Math.max(leastMs, s.ref.durationMs / 2));
      list.misses = missed ? list.misses + 1 : 0;
      list.againMs = clock.now() + rest;
      if (good) came();
      changed();
    };
    if (!list.loaded) untilMs = clock.now() + firstMs;
    settled(
      beside(listUrl(s.playlist!), abort.signal, (loaded) => {
        if (running !== abort) return;
        line.others(loaded - seen);
        seen = loaded;
        if (loaded <= mostBytes) return;
        abort.abort();
        end();
      }).then(
        ({ data }) => end(new Uint8Array(data)),
        () => end(),
      ),
    );
  };

  return {
    entry,
    packaged: (s) => !!entry(s) || (!wanted(s) && !!running && clock.now() < untilMs),
    // Virtual segments have one length, but for the last (spec/site.md).
    long: (s) => find(`${s.name}#0-${virtualLength - 1}`)?.objectLength,
    refuse(c) {
      for (const { entries } of lists.values()) if (entries.get(c.name) === c) entries.delete(c.name);
    },
    asked(s, { playlist, representation, beside }) {
      s.playlist = playlist &&= streamUrl(playlist, representation);
      if (!playlist) return;
      const list: List = lists.get(playlist) ?? { beside, entries: new Map(), againMs: 0, misses: 0 };
      list.beside = beside;
      lists.delete(playlist);
      lists.set(playlist, list);
      for (const oldest of lists.keys()) {
        if (lists.size <= mostLists) break;
        lists.delete(oldest);
      }
      if (!list.loaded) load(list, s);
    },
    lacks(s) {
      const list = lists.get(s.playlist ?? '');
      if (list) load(list, s);
    },
    stop() {
      const abort = running;
      running = undefined;
      abort?.abort();
    },
  };
};
