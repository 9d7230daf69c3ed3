/**
 * Notices names that are probably this viewer's alone: their query parameters select no content, and the site's key rule keeps them. It
 * is in a script of its own (`seldom.ts`).
 */
import type { SiteRules } from '../segment/index.ts';
import type { Segment } from './segments.ts';
import type { Shared } from './shared.ts';

export interface UnlistedHost {
  rules: SiteRules;
  /** The title's name. */
  title?: string;
  notice(code: 'signed-urls', message: string, hint: string): void;
}

export type CreateUnlisted = (shared: Shared, host: UnlistedHost) => Unlisted;

export interface Unlisted {
  /** A seed does not know a segment that it should know. */
  heard(s: Segment): void;
}

/** Segments that no seed knows before it is said: one may be new, or gone. */
const enough = 3;
/** Bounds of spec/tracker-protocol.md, "Statistics". */
const mostNames = 8;
const tellable = /^[\w.~%-]{1,64}$/;

/** The names of the query parameters in a key or title that may be told. */
const parametersOf = (name: string): string[] => [
  ...new Set(
    (name.split('#', 1)[0]!.split('?')[1] ?? '')
      .split('&')
      .map((p) => p.split('=', 1)[0]!)
      .filter((p) => tellable.test(p)),
  ),
];

export const createUnlisted: CreateUnlisted = ({ stats }, { rules, title = '', notice }) => {
  const names = new Set<string>();
  let segments = 0;

  const say = (what: string, parameters: string[]) =>
    notice(
      'signed-urls',
      `${what} parameters that are probably one viewer's: ${parameters.join(', ')}. Such names are not shared.`,
      'If they do not select content, add them to key.ignore_query of the site, or a preset to key.presets.',
    );

  if (rules.hasCredential(title)) say('The title carries', parametersOf(title));

  return {
    heard({ name }) {
      const found = parametersOf(name).filter((p) => names.has(p) || names.size < mostNames);
      if (!found.length) return;
      for (const p of found) names.add(p);
      stats.unlisted(found);
      if (++segments === enough) say('Segments that no seed knows carry', [...names]);
    },
  };
};
