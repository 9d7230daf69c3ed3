/** Loads the packager's certificates of parts (spec/packaging.md, "Parts"). The node says when. */

import { maxCertificate, partUrl } from '../certificate/index.ts';
import type { Content } from '../parts/shelf.ts';
import type { SegmentRequest } from '../ports.ts';
import type { Followed } from './partload.ts';
import type { Shared } from './shared.ts';
import type { Verification } from './verification.ts';

export interface PartCertificatesHost {
  verification: Pick<Verification, 'judge' | 'keys'>;
}

/** What a certificate is beside: a part with its ID. That of a chunk says itself what it is of. */
export interface Beside {
  request: Pick<SegmentRequest, 'url' | 'range' | 'beside'>;
  id?: string | undefined;
}

export interface PartCertificates {
  /** A packager's key is known. */
  wanted(): boolean;
  /**
   * Loads the certificate of the part that the player of a stream waits for, or of a chunk. `came` hears what it says, undefined if it does
   * not count, unless the load is given up.
   */
  load(f: Followed, l: Beside, came: (content?: Content) => void): void;
  /** Gives up the load that runs, if one does, */
  giveUp(f: Followed): void;
  /** since it takes too long. */
  late(f: Followed | undefined): void;
}

export const createPartCertificates = (
  { line, stats, segments, settled }: Shared,
  { verification }: PartCertificatesHost,
): PartCertificates => {
  const take = async ({ request, id }: Beside, abort: AbortController): Promise<Content | undefined> => {
    const { url, range, beside } = request;
    let seen = 0;
    const { data } = await beside!(partUrl(url, range), abort.signal, (loaded) => {
      line.others(loaded - seen);
      seen = loaded;
      if (loaded > maxCertificate) abort.abort();
    });
    if (data.byteLength > maxCertificate) return undefined;
    const c = await verification.judge(undefined, new Uint8Array(data));
    if (c?.alg !== 2) return undefined;
    const segment = await segments.idOf(c.name);
    return id && segment !== id ? undefined : { ...c, segment };
  };

  const giveUp = (f: Followed): void => {
    const { certifying } = f;
    f.certifying = undefined;
    certifying?.abort();
  };

  return {
    giveUp,
    wanted: () => verification.keys.some((k) => k.alg === 2),
    load(f, l, came) {
      const abort = new AbortController();
      f.certifying = abort;
      const end = (content?: Content) => {
        if (f.certifying !== abort) return;
        f.certifying = undefined;
        stats.count(content ? 'part_certificates' : 'part_certificates_missed');
        came(content);
      };
      settled(take(l, abort).then(end, () => end()));
    },
    late(f) {
      if (f) giveUp(f);
      stats.count('part_certificates_missed');
    },
  };
};
