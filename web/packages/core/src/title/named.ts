import type { Crypto, SegmentRef } from '../ports.ts';
import { type SiteRules, segmentId } from '../segment/index.ts';

/** The IDs of segments; none where one is none of the site's. */
export async function named(list: SegmentRef[], rules: SiteRules, crypto: Crypto): Promise<string[]> {
  try {
    return await Promise.all(
      list.map(({ url, range }) => segmentId(rules.config.name, rules.segmentName(rules.key(url), range), crypto)),
    );
  } catch {
    return [];
  }
}
