import type { Crypto, SegmentRef } from '../ports.ts';
import { type SiteRules, segmentId } from '../segment/index.ts';
import { type Welcome, wantedSegments } from '../session/messages.ts';
import type { TitleOptions } from './options.ts';

/** How a title is called on its site. */
export interface Naming {
  rules: SiteRules;
  name: string;
  /** The manifest's key without its query. */
  path: string;
}

/** Names the manifest by the rules that the tracker sent; throws why they have no name for it. */
export const createNaming = (
  o: Pick<TitleOptions, 'manifest' | 'title' | 'file' | 'rules'>,
  welcome: Welcome,
): Naming => {
  const rules = o.rules(welcome);
  const key = rules.key(o.manifest);
  return { rules, name: rules.title(key, o.file ? key : o.title), path: key.split('?')[0]! };
};

/** The IDs of the first segments, as many as an offer may name; none where one is none of the site's. */
export const named = async (list: SegmentRef[], { rules }: Naming, crypto: Crypto): Promise<string[]> => {
  try {
    return await Promise.all(
      list
        .slice(0, wantedSegments)
        .map(({ url, range }) => segmentId(rules.config.name, rules.segmentName(rules.key(url), range), crypto)),
    );
  } catch {
    return [];
  }
};
