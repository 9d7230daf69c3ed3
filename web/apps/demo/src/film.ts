import { formatOf, type PlayerName, unplayable } from './players/choice';

/** What this page plays and how: from the page's meta elements, overridden by its query. */
export interface Film {
  src: string;
  /** The same as DASH: an MPD; empty where there is none. */
  dash: string;
  /** It is a live stream in parts. */
  lowLatency: boolean;
  title: string;
  attribution: string;
}

/** The query parameters of the page. Those beyond `viewer` and `leeway` serve tests. */
export interface PageOptions {
  /** Number shown in the title; 1 for the first window. */
  viewer: number;
  /** False: the page leaves Leeway's script out. */
  leeway: boolean;
  /** Fixed rendition (index into the master playlist, lowest bitrate first), or undefined for adaptive. */
  level: number | undefined;
  /** How far ahead the player buffers, seconds. */
  maxBuffer: number;
  /** False: the page waits for the person to press play. */
  autoplay: boolean;
  /** For how long the page's buttons stop a service, seconds. */
  outage: number;
  /** Manifest that overrides the film's, or undefined. */
  src: string | undefined;
}

/** Reads the page's options from a query string; what makes no sense counts as not given. */
export function readOptions(search: string): PageOptions {
  const query = new URLSearchParams(search);
  const whole = (name: string): number | undefined => {
    const text = query.get(name);
    return text !== null && /^\d{1,4}$/.test(text) ? Number(text) : undefined;
  };
  return {
    viewer: whole('viewer') || 1,
    leeway: query.get('leeway') !== 'off',
    level: whole('level'),
    maxBuffer: whole('maxbuffer') || 30,
    autoplay: query.get('autoplay') !== '0',
    outage: whole('outage') || 20,
    src: query.get('src') ?? undefined,
  };
}

/** Reads the film from the page's meta elements; a film from the query has no known title or attribution. */
export function readFilm(page: Document, override: string | undefined): Film {
  const meta = (name: string) => readMeta(page, `film-${name}`);
  const film = {
    src: meta('src'),
    dash: meta('dash'),
    lowLatency: meta('low-latency') !== '',
    title: meta('title'),
    attribution: meta('attribution'),
  };
  if (override === undefined || override === film.src) return film;
  return { src: override, dash: '', lowLatency: false, title: override.split('/').at(-2) ?? override, attribution: '' };
}

/** The manifest of a film for a player, or why there is none. */
export function sourceFor(film: Film, player: PlayerName, page: string): { src: string } | { error: string } {
  const sources = [film.src, film.dash];
  // Shaka drops parts of HLS (docs/conformance.md).
  if (film.lowLatency && player === 'shaka') sources.reverse();
  for (const src of sources) {
    if (src !== '' && unplayable(player, formatOf(src, page)) === undefined) return { src };
  }
  return { error: `The film does not play: ${unplayable(player, formatOf(film.src, page))}` };
}

/** The content of a meta element, or nothing. */
export function readMeta(page: Document, name: string): string {
  return page.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? '';
}
