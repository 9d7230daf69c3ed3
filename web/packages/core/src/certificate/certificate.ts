import type { Crypto, Revocation, VerifyKey } from '../ports.ts';
import { hex, maxLength, pieceCount, pieceLength } from '../segment/segment.ts';

/** What a certificate says (spec/certificate.md). Times are ms since the Unix epoch, in tracker time. */
export interface Certificate {
  /** 16 hex characters. */
  keyId: string;
  issuedAt: number;
  notAfter: number;
  /** Bytes of the whole object; equals `length` unless the name has a range. */
  objectLength: number;
  length: number;
  site: string;
  name: string;
  /** Opaque bytes. */
  validator: Uint8Array;
  /** SHA-256 of each piece, one after the other. */
  digests: Uint8Array;
  /** As it came, to pass on. */
  raw: Uint8Array;
}

export type CertificateOutcome =
  | 'malformed'
  | 'unknown-alg'
  | 'unknown-key'
  | 'bad-signature'
  | 'wrong-site'
  | 'wrong-name'
  | 'revoked'
  | 'expired'
  | 'from-the-future'
  | 'valid';

const signatureSize = 64;
const maxSkewMs = 300_000;
const maxSize = 17_837;

const text = (bytes: Uint8Array): string => String.fromCharCode(...bytes);

/** Reads a certificate and checks its form, not its signature. The bytes are kept, not copied. */
export function parseCertificate(raw: Uint8Array): Certificate | 'malformed' | 'unknown-alg' {
  if (raw.length < 143 || raw.length > maxSize || text(raw.subarray(0, 4)) !== 'LWC1') return 'malformed';
  const view = new DataView(raw.buffer, raw.byteOffset, raw.length);
  const number = (at: number) => Number(view.getBigUint64(at));
  let at = 41;
  // Past the end a field is empty and `at` beyond what the size check below lets through.
  const field = (size: 1 | 2): Uint8Array => {
    const start = at + size;
    if (start > raw.length) {
      at = Number.POSITIVE_INFINITY;
      return new Uint8Array();
    }
    at = start + (size > 1 ? view.getUint16(at) : view.getUint8(at));
    return raw.subarray(start, at);
  };
  const length = view.getUint32(37);
  const [site, name, validator] = [text(field(1)), text(field(2)), field(1)];
  const end = raw.length - signatureSize;
  const [issuedAt, notAfter, objectLength] = [number(13), number(21), number(29)];
  const range = /^[^#]+#(0|[1-9]\d*)-(0|[1-9]\d*)$/.exec(name);
  const [first, last] = [Number(range?.[1] ?? 0), Number(range?.[2] ?? length - 1)];
  if (
    length < 1 ||
    length > maxLength ||
    at + 32 * pieceCount(length) !== end ||
    !/^[!-~]{1,32}$/.test(site) ||
    !(range ? /^[!-~]{1,1057}$/ : /^[!"$-~]{1,1057}$/).test(name) ||
    ![issuedAt, notAfter, objectLength, last].every(Number.isSafeInteger) ||
    last - first + 1 !== length ||
    (range ? last >= objectLength : objectLength !== length)
  )
    return 'malformed';
  if (raw[4] !== 1) return 'unknown-alg';
  const digests = raw.subarray(at, end);
  return {
    keyId: hex(raw.subarray(5, 13)),
    issuedAt,
    notAfter,
    objectLength,
    length,
    site,
    name,
    validator,
    digests,
    raw,
  };
}

/** Whether a revocation withdraws a certificate. */
export const withdraws = (revocations: readonly Revocation[], c: Certificate): boolean =>
  revocations.some((r) =>
    'site' in r ? r.site === c.site && c.name.startsWith(r.prefix) && c.issuedAt < r.minIssuedAt : r.keyId === c.keyId,
  );

/** Verifies a parsed certificate for the segment that the viewer itself named, at tracker time `nowMs`. */
export async function verifyCertificate(
  c: Certificate,
  expected: { site: string; name: string },
  keys: readonly VerifyKey[],
  revocations: readonly Revocation[],
  nowMs: number,
  crypto: Crypto,
): Promise<Exclude<CertificateOutcome, 'malformed' | 'unknown-alg'>> {
  const key = keys.find((k) => k.keyId === c.keyId);
  if (!key) return 'unknown-key';
  const end = c.raw.length - signatureSize;
  const signed = new Uint8Array([...new TextEncoder().encode('leeway certificate v1\0'), ...c.raw.subarray(0, end)]);
  // A point that is none makes WebCrypto reject: nothing was signed with it.
  const good = crypto.verify(key.key, c.raw.subarray(end), signed).catch(() => false);
  if (!(await good)) return 'bad-signature';
  if (c.site !== expected.site) return 'wrong-site';
  if (c.name !== expected.name) return 'wrong-name';
  if (withdraws(revocations, c)) return 'revoked';
  const now = Math.floor(nowMs);
  return now > c.notAfter ? 'expired' : c.issuedAt > now + maxSkewMs ? 'from-the-future' : 'valid';
}

/** Whether `data` is piece `i` of the segment: of its length and with its digest. */
export async function checkPiece(c: Certificate, i: number, data: Uint8Array, crypto: Crypto): Promise<boolean> {
  if (!data.length || data.length !== pieceLength(c.length, i)) return false;
  const digest = await crypto.digest(data);
  return digest.every((b, n) => b === c.digests[32 * i + n]);
}

/** Whether two certificates vouch for the same bytes. */
export const sameContent = (a: Certificate, b: Certificate): boolean =>
  a.length === b.length && a.objectLength === b.objectLength && a.digests.every((d, i) => d === b.digests[i]);
