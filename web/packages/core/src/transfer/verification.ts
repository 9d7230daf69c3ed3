/**
 * Compares what peers and the origin send with the certificates that peers show, and decides about blame,
 * contradictions, revocations.
 */
import {
  type Certificate,
  checkPiece,
  counts,
  parseCertificate,
  sameContent,
  verifyCertificate,
  withdraws,
} from '../certificate/index.ts';
import type { Reason, Revocation, VerifyKey } from '../ports.ts';
import { byeProtocolError, noneUnknown } from '../protocol/peer.ts';
import { pieceCount, pieceSize, piecesOf } from '../segment/index.ts';
import type { Agreement } from './agreement.ts';
import { createCompleting } from './completing.ts';
import type { Download } from './downloads.ts';
import type { Lists } from './lists.ts';
import type { Peer } from './ports.ts';
import { createLimiter, reset, type Segment, type Stretch } from './segments.ts';
import type { Shared } from './shared.ts';
import { createSuspects } from './suspects.ts';

export interface VerificationHost {
  site: string;
  agreement: Agreement;
  /** A piece passed. */
  accepted(s: Segment, piece: number, data: Uint8Array, from: Peer | undefined, d?: Download): void;
  /** A seed says that the object is so long that it is shared in parts. */
  large(s: Segment, length: number): Promise<void>;
  /** What is held of the segment is no longer certified. */
  withdrawn(s: Segment): void;
  turnOff(reason: Reason): void;
  lists: Lists;
  /** A seed does not know a segment. */
  unlisted(s: Segment): void;
}

export interface Verification {
  keys: VerifyKey[];
  serverOffsetMs: number;
  /** What is withdrawn, as far as it has been heard; the last thousand. */
  readonly revocations: Revocation[];
  certificate(peer: Peer, id: string, raw: Uint8Array): void;
  none(peer: Peer, id: string, reason: number, objectLength?: number): void;
  asked(peer: Peer, ids: string[]): void;
  /** All bytes of a piece are in. */
  piece(peer: Peer, d: Download): void;
  /** Takes what the origin sent, all of it or a stretch of pieces; false: it does not fit the certificate, or there is none. */
  origin(s: Segment, data: Uint8Array, part?: Stretch): Promise<boolean>;
  /** What the origin sent of a segment is what a certificate says, or is not: where it differs too often, peer delivery ends. */
  agrees(same: boolean, url: string, segment: string): void;
  /** What a certificate says that names itself, if it is valid. The peer that showed it is dropped for one that no honest peer shows. */
  judge(peer: Pick<Peer, 'drop'> | undefined, raw: Uint8Array): Promise<Certificate | undefined>;
  revoke(list: Revocation[]): void;
  /** Whether an entry of a list would verify if its signature is right. */
  counts(c: Certificate): boolean;
  /** A list has come. */
  listed(): void;
  /** The peer is gone: its unanswered requests for certificates are open again. */
  gone(peer: Peer): void;
}

/** For so long after a dispute the certificate is still shown under which pieces were sent. */
const formerlyMs = 3_000;
/** Outcomes that only a peer which forges or garbles brings about. */
const dishonest = /^(malformed|bad|wrong)/;

export const createVerification = (shared: Shared, host: VerificationHost): Verification => {
  const { clock, crypto, stats, segments, nowUs, emit, settled, changed } = shared;
  const { site, agreement, accepted, withdrawn } = host;
  const limited = createLimiter(8);
  /** Grows in place: what comes while a signature is being checked counts. */
  const revocations: Revocation[] = [];
  const check = (c: Certificate, n: number, data: Uint8Array) => limited(() => checkPiece(c, n, data, crypto));

  const suspects = createSuspects(clock, check);

  const forget = (s: Segment, state: Segment['state']) => {
    reset(s, state);
    s.sources = [];
    withdrawn(s);
  };

  const contradicted = (url: string, segment: string) => {
    stats.add('contradictions', 1);
    emit('contradiction', { url, segment });
  };

  const agrees = (same: boolean, url: string, segment: string) => {
    if (same) return agreement.agrees();
    contradicted(url, segment);
    if (agreement.differs()) host.turnOff('policy');
  };

  const dispute = (s: Segment, a: Certificate, b: Certificate) => {
    s.formerly = s.certificate && { certificate: s.certificate, at: clock.now() };
    s.disputed = a.issuedAt < b.issuedAt ? [a, b] : [b, a];
    stats.add('disputes', 1);
    contradicted(s.ref.url, s.id);
    forget(s, 'refused');
  };

  /** A suspect answered. If it is cleared, the name has two contents. */
  const hearSuspect = async (peer: Peer, s: Segment, c: Certificate | undefined) => {
    if (!(await suspects.answer(peer, c, s.certificate ?? s.disputed?.[1]))) return;
    if (s.certificate) dispute(s, s.certificate, c!);
    changed();
  };

  const now = () => clock.now() + verification.serverOffsetMs;
  const verify = (c: Certificate, { name }: Pick<Segment, 'name'>) =>
    verifyCertificate(c, { site, name }, verification.keys, revocations, now(), crypto);

  const certify = (s: Segment, c: Certificate) => {
    s.certificate = c;
    s.state = 'held';
    s.certHeldUs = nowUs();
  };

  /** Takes what the origin sent if it is what the certificate says. */
  const compared = (s: Segment, pieces: Uint8Array[], same: boolean, from = 0) => {
    agrees(same, s.ref.url, s.id);
    if (same) for (const [n, p] of pieces.entries()) accepted(s, from + n, p, undefined);
  };

  const { complete, differs, listed } = createCompleting(shared, {
    lists: host.lists,
    verify,
    limited,
    certify,
    origin: (s, data) => verification.origin(s, data),
    compared,
    dispute,
  });

  /** Whether a certificate holds, of what it names itself if nothing else is expected; and whether an honest peer may show it. */
  const judge = async (raw: Uint8Array, of?: Segment) => {
    const parsed = parseCertificate(raw);
    const outcome = typeof parsed === 'string' ? parsed : await verify(parsed, of ?? parsed);
    if (outcome === 'valid') return { valid: parsed as Certificate };
    stats.count(`certificate_${outcome}`);
    return { lies: dishonest.test(outcome) };
  };

  /** A peer shows a certificate. */
  const shown = async (peer: Peer, id: string, raw: Uint8Array) => {
    const s = segments.byId.get(id);
    const suspect = suspects.of(peer, id);
    const { link } = peer;
    if (s && link.wanted?.includes(id) && !s.certPeers.includes(link.peer)) {
      // The offer has asked for it, and the answer said it.
      s.certPeers.push(link.peer);
      if (s.state === 'none') s.state = 'asked';
      if (s.certAskedUs < 0) s.certAskedUs = nowUs();
    }
    if (!s || !(suspect || s.certPeers.includes(peer.link.peer))) return stats.count('unasked_certificates');
    const { valid, lies } = await judge(raw, s);
    const other = valid && (await differs(s, valid));
    if (lies) return peer.drop('protocol-error', byeProtocolError, true);
    if (suspects.of(peer, id)) return hearSuspect(peer, s, valid);
    if (!valid || (s.object && s.object !== valid.objectLength)) return verification.none(peer, id, noneUnknown);
    if (s.disputed || (s.state === 'refused' && !s.loads.size)) return;
    if (!s.certificate && other) {
      dispute(s, other, valid);
    } else if (!s.certificate) {
      certify(s, valid);
      if (s.uncertified) settled(verification.origin(s, s.uncertified));
    } else if (!sameContent(s.certificate, valid)) {
      dispute(s, s.certificate, valid);
    } else if (valid.notAfter > s.certificate.notAfter) {
      s.certificate = valid;
    }
    changed();
  };

  /** All bytes of a piece are in: it is stored, or its sender is a suspect. */
  const pieceCame = async (peer: Peer, d: Download) => {
    const s = segments.byId.get(d.segment);
    const c = s?.certificate;
    const ok = !!c && (await check(c, d.piece, d.data));
    peer.supply.downloads.remove(d);
    // Withdrawn or replaced while it was on the way: no peer's fault.
    if (!s || !c || s.certificate !== c) return changed();
    if (ok) return accepted(s, d.piece, d.data, peer, d);
    stats.add('rejected_bytes', d.length);
    if (suspects.has(peer)) return;
    // Right under another certificate, perhaps: then the name is at fault, not the peer.
    suspects.suspect(peer, d);
    changed();
  };

  const verification: Verification = {
    keys: [],
    serverOffsetMs: 0,
    revocations,
    counts: (c) => counts(c, site, verification.keys, revocations, now()),
    listed,
    agrees,

    certificate: (peer, id, raw) => settled(shown(peer, id, raw)),

    none(peer, id, reason, objectLength = 0) {
      const s = segments.byId.get(id);
      stats.count(`certificate_none_${reason}`);
      if (suspects.of(peer, id)) return suspects.drop(peer);
      peer.holdings.forget(id);
      if (s?.name.includes('?') && reason === noneUnknown && peer.link.role === 'seed') host.unlisted(s);
      if (s && objectLength && peer.link.role === 'seed') return settled(host.large(s, objectLength));
      // Nothing is outstanding any more unless another was asked later.
      if (s?.state === 'asked' && s.certPeers.at(-1) === peer.link.peer) s.state = 'none';
      changed();
    },

    asked(peer, ids) {
      for (const segment of ids) {
        const s = segments.byId.get(segment);
        // Two that find out at the same time suspect each other.
        const { certificate, at = 0 } = (s?.disputed && s.formerly) ?? {};
        const was = at + formerlyMs > clock.now() ? certificate : undefined;
        const c = s?.certificate ?? was;
        if (c) peer.send({ type: 'certificate', segment, certificate: c.raw });
        else peer.send({ type: 'certificate-none', segment, reason: noneUnknown, objectLength: 0 });
      }
    },

    piece: (peer, d) => settled(pieceCame(peer, d)),

    async origin(s, data, part) {
      const c = s.certificate;
      if (!c) {
        if (part) return false;
        s.uncertified = data;
        return complete(s);
      }
      s.uncertified = undefined;
      const [from, until] = part ?? [0, pieceCount(c.length)];
      const pieces = piecesOf(data);
      const fits =
        data.length === Math.min(until * pieceSize, c.length) - from * pieceSize &&
        (await Promise.all(pieces.map((p, n) => check(c, from + n, p)))).every(Boolean);
      if (s.certificate !== c) return false;
      if (fits || !part) compared(s, pieces, fits, from);
      changed();
      return fits;
    },

    async judge(peer, raw) {
      const { valid, lies } = await judge(raw);
      if (lies) peer?.drop('protocol-error', byeProtocolError, true);
      return valid;
    },

    revoke(list) {
      revocations.push(...list);
      revocations.splice(0, revocations.length - 1000);
      for (const s of segments.byId.values()) {
        if (s.disputed && withdraws(revocations, s.disputed[0])) {
          s.disputed = undefined;
          forget(s, 'none');
        } else if (s.certificate && withdraws(revocations, s.certificate)) {
          forget(s, 'none');
        }
      }
      changed();
    },

    gone(peer) {
      suspects.acquit(peer);
      for (const s of segments.byId.values()) {
        const i = s.certPeers.indexOf(peer.link.peer);
        if (i < 0) continue;
        s.certPeers.splice(i, 1);
        if (s.state === 'asked' && !s.certPeers.length) s.state = 'none';
      }
    },
  };
  return verification;
};
