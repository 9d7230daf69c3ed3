/** Loads the packager's certificates of parts (spec/packaging.md, "Parts"). The node says when. */

import { partUrl } from '../certificate/index.ts';
import type { Content } from '../parts/shelf.ts';
import type { Followed, PartLoad } from './partload.ts';
import type { Shared } from './shared.ts';
import type { Verification } from './verification.ts';

export interface PartCertificatesHost {
  verification: Pick<Verification, 'judge' | 'keys'>;
}

export interface PartCertificates {
  /** A packager's key is known. */
  wanted(): boolean;
  /**
   * Loads the certificate of the part that the player of a stream waits for, and returns what it says, undefined if it does not count.
   * `over`: the load was given up.
   */
  load(f: Followed, l: PartLoad): Promise<{ over: boolean; content?: Content | undefined }>;
  /** Gives up a load that takes too long. */
  late(f: Followed | undefined): void;
}

/** The longest certificate of a part that is loaded, bytes. */
const mostCertificate = 8192;

/** Gives up the load that runs, if one does. */
export const giveUp = (f: Followed): void => {
  const { certifying } = f;
  f.certifying = undefined;
  certifying?.abort();
};

export const createPartCertificates = (
  { line, stats, segments }: Shared,
  { verification }: PartCertificatesHost,
): PartCertificates => {
  const take = async ({ request, id }: PartLoad, abort: AbortController): Promise<Content | undefined> => {
    const { url, range, beside } = request;
    let seen = 0;
    const { data } = await beside!(partUrl(url, range), abort.signal, (loaded) => {
      line.others(loaded - seen);
      seen = loaded;
      if (loaded > mostCertificate) abort.abort();
    });
    if (data.byteLength > mostCertificate) return undefined;
    const c = await verification.judge({ drop() {} }, new Uint8Array(data));
    if (c?.alg !== 2 || (await segments.idOf(c.name)) !== id) return undefined;
    return { ...c, segment: id };
  };

  return {
    wanted: () => verification.keys.some((k) => k.alg === 2),
    async load(f, l) {
      const abort = new AbortController();
      f.certifying = abort;
      const content = await take(l, abort).catch(() => undefined);
      if (f.certifying !== abort) return { over: true };
      f.certifying = undefined;
      stats.count(content ? 'part_certificates' : 'part_certificates_missed');
      return { over: false, content };
    },
    late(f) {
      if (f) giveUp(f);
      stats.count('part_certificates_missed');
    },
  };
};
