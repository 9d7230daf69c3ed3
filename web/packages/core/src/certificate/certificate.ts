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
  /** SHA-256 of each piece, one after the other; none in a short certificate. */
  digests: Uint8Array;
  /** 1 of a seed, 2 of a packager. */
  alg: number;
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
/** The longest certificate, bytes. */
export const maxCertificate = 17_837;
const maxShort = 1_485;
const maxPackagedMs = 31 * 86_400_000;
const packager = 2;

const text = (bytes: Uint8Array): string => String.fromCharCode(...bytes);

/** Reads a certificate and checks its form, not its signature. The bytes are kept, not copied. */
export const parseCertificate = (raw: Uint8Array) => parse(raw, 'LWC1', maxCertificate);

/** Reads a short certificate, as `parseCertificate` does. */
export const parseShort = (raw: Uint8Array) => parse(raw, 'LWS1', maxShort);

function parse(raw: Uint8Array, magic: string, most: number): Certificate | 'malformed' | 'unknown-alg' {
  if (raw.length < 143 || raw.length > most || text(raw.subarray(0, 4)) !== magic) return 'malformed';
  const short = most === maxShort;
  const alg = raw[4]!;
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
    at + 32 * (short ? 1 : pieceCount(length)) !== end ||
    (alg === packager && notAfter - issuedAt > maxPackagedMs) ||
    !/^[!-~]{1,32}$/.test(site) ||
    !(range ? /^[!-~]{1,1057}$/ : /^[!"$-~]{1,1057}$/).test(name) ||
    ![issuedAt, notAfter, objectLength, last].every(Number.isSafeInteger) ||
    last - first + 1 !== length ||
    (range ? last >= objectLength : objectLength !== length)
  )
    return 'malformed';
  if (alg !== packager && (alg !== 1 || short)) return 'unknown-alg';
  const digests = raw.subarray(short ? end : at, end);
  return {
    alg,
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
export const withdraws = (
  revocations: readonly Revocation[],
  c: Pick<Certificate, 'site' | 'name' | 'keyId' | 'issuedAt'>,
): boolean =>
  revocations.some((r) =>
    'site' in r ? r.site === c.site && c.name.startsWith(r.prefix) && c.issuedAt < r.minIssuedAt : r.keyId === c.keyId,
  );

/** The bytes of several parts, one after the other. */
export const joinBytes = (...parts: Uint8Array[]): Uint8Array => {
  const whole = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const p of parts) {
    whole.set(p, at);
    at += p.length;
  }
  return whole;
};

export const sameBytes = (a: Uint8Array, b: Uint8Array): boolean =>
  a.length === b.length && a.every((x, i) => x === b[i]);

/** What the signature is over, behind the magic: head and digests, or head and their digest. */
async function signedParts(c: Certificate, crypto: Crypto): Promise<Uint8Array[]> {
  const end = c.raw.length - signatureSize;
  // A short certificate has the digest of the digests in its place already.
  if (c.alg !== packager || !c.digests.length) return [c.raw.subarray(4, end)];
  return [c.raw.subarray(4, end - c.digests.length), await crypto.digest(c.digests)];
}

/**
 * The certificate that a short one stands for, given the digests of a segment of `length` bytes; undefined if the packager
 * signed others: the bytes contradict the certificate.
 */
export async function completeCertificate(
  c: Certificate,
  length: number,
  digests: Uint8Array,
  crypto: Crypto,
): Promise<Certificate | undefined> {
  const end = c.raw.length - signatureSize;
  const root = await crypto.digest(digests);
  if (length !== c.length || !sameBytes(root, c.raw.subarray(end - 32, end))) return undefined;
  const head = c.raw.subarray(4, end - 32);
  const raw = joinBytes(new TextEncoder().encode('LWC1'), head, digests, c.raw.subarray(end));
  return { ...c, digests, raw };
}

/** Verifies a parsed certificate for the segment that the viewer itself named, at tracker time `nowMs`. */
export async function verifyCertificate(
  c: Certificate,
  expected: { site: string; name: string },
  keys: readonly VerifyKey[],
  revocations: readonly Revocation[],
  nowMs: number,
  crypto: Crypto,
): Promise<Exclude<CertificateOutcome, 'malformed' | 'unknown-alg'>> {
  const key = keys.find((k) => k.keyId === c.keyId && k.alg === c.alg);
  if (!key) return 'unknown-key';
  const end = c.raw.length - signatureSize;
  const signed = joinBytes(new TextEncoder().encode('leeway certificate v1\0LWC1'), ...(await signedParts(c, crypto)));
  // A point that is none makes WebCrypto reject: nothing was signed with it.
  const good = crypto.verify(key.key, c.raw.subarray(end), signed).catch(() => false);
  if (!(await good)) return 'bad-signature';
  if (c.site !== expected.site) return 'wrong-site';
  if (c.name !== expected.name) return 'wrong-name';
  if (withdraws(revocations, c)) return 'revoked';
  return timely(c, nowMs);
}

const timely = (c: Certificate, nowMs: number) => {
  const now = Math.floor(nowMs);
  return now > c.notAfter ? 'expired' : c.issuedAt > now + maxSkewMs ? 'from-the-future' : 'valid';
};

/** Whether an entry of a list would verify if its signature is right: that costs nothing, and is asked of many. */
export const counts = (
  c: Certificate,
  site: string,
  keys: readonly VerifyKey[],
  revocations: readonly Revocation[],
  nowMs: number,
): boolean =>
  c.alg === packager &&
  c.site === site &&
  keys.some((k) => k.keyId === c.keyId && k.alg === packager) &&
  timely(c, nowMs) === 'valid' &&
  !withdraws(revocations, c);

/** Whether `data` is piece `i` of the segment: of its length and with its digest. */
export async function checkPiece(c: Certificate, i: number, data: Uint8Array, crypto: Crypto): Promise<boolean> {
  if (!data.length || data.length !== pieceLength(c.length, i)) return false;
  return sameBytes(await crypto.digest(data), c.digests.subarray(32 * i, 32 * i + 32));
}

/** Whether a short certificate is for the bytes of a complete one. */
export const standsFor = async (short: Certificate, c: Certificate, crypto: Crypto): Promise<boolean> =>
  c.objectLength === short.objectLength && !!(await completeCertificate(short, c.length, c.digests, crypto));

/** Whether two certificates are for the same bytes. */
export const sameContent = (a: Certificate, b: Certificate): boolean =>
  a.length === b.length && a.objectLength === b.objectLength && sameBytes(a.digests, b.digests);
