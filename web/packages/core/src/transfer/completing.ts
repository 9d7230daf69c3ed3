/** Makes certificates of what the origin sent and of what packagers have signed. */
import {
  type Certificate,
  type CertificateOutcome,
  completeCertificate,
  joinBytes,
  standsFor,
} from '../certificate/index.ts';
import { piecesOf } from '../segment/index.ts';
import type { Lists } from './lists.ts';
import type { createLimiter, Segment } from './segments.ts';
import { type Shared, sharing } from './shared.ts';

export interface CompletingHost {
  lists: Lists;
  verify(c: Certificate, s: Segment): Promise<CertificateOutcome>;
  limited: ReturnType<typeof createLimiter>;
  certify(s: Segment, c: Certificate): void;
  /** Holds what the origin sent against a certificate that has come meanwhile. */
  origin(s: Segment, data: Uint8Array): Promise<boolean>;
  /** Takes what the origin sent if it is what the certificate says. */
  compared(s: Segment, pieces: Uint8Array[], same: boolean): void;
  dispute(s: Segment, a: Certificate, b: Certificate): void;
}

export const createCompleting = (shared: Shared, host: CompletingHost) => {
  const { crypto, stats, segments, settled, changed } = shared;
  const { lists, verify, limited } = host;

  /** Makes the certificate of a segment that the origin has sent, if a list has its short form; whether the bytes fit it. */
  const complete = async (s: Segment): Promise<boolean> => {
    const data = s.uncertified!;
    const short = lists.entry(s);
    if (!short) {
      lists.lacks(s);
      return false;
    }
    s.uncertified = undefined;
    const pieces = piecesOf(data);
    const digests = await Promise.all(pieces.map((p) => limited(() => crypto.digest(p))));
    const full = await completeCertificate(short, data.length, joinBytes(...digests), crypto);
    const outcome = await verify(short, s);
    if (s.disputed || !sharing(shared)) return false;
    if (s.certificate) return host.origin(s, data);
    if (outcome !== 'valid') {
      stats.count(`list_${outcome}`);
      lists.refuse(short);
      s.uncertified = data;
      return complete(s);
    }
    if (full) {
      stats.count('lists_completed');
      host.certify(s, full);
    }
    host.compared(s, pieces, !!full);
    changed();
    return !!full;
  };

  /** The entry of a list that has signed another content than a certificate, if there is one. */
  const differs = async (s: Segment, c: Certificate): Promise<Certificate | undefined> => {
    const short = lists.entry(s);
    if (!short || (await standsFor(short, c, crypto))) return undefined;
    return (await verify(short, s)) === 'valid' ? short : undefined;
  };

  /** A list has come: what waits for a certificate may have one now, and what has one may contradict it. */
  const listed = () => {
    for (const s of segments.byId.values()) {
      const c = s.certificate;
      if (s.disputed || !lists.entry(s)) continue;
      if (!c && s.uncertified && sharing(shared)) settled(complete(s));
      if (c)
        settled(
          differs(s, c).then((other) => {
            if (!other || s.certificate !== c) return;
            host.dispute(s, c, other);
            changed();
          }),
        );
    }
    changed();
  };

  return { complete, differs, listed };
};
