import { webcrypto } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Crypto, Revocation } from '../ports.ts';
import { hex } from '../segment/index.ts';
import {
  type Certificate,
  checkPiece,
  completeCertificate,
  counts,
  listUrl,
  parseCertificate,
  parseList,
  parseShort,
  partUrl,
  representationUrl,
  sameContent,
  standsFor,
  verifyCertificate,
  withdraws,
} from './index.ts';

interface Vectors {
  keys: { name: string; key_id: string; public: string; alg: number }[];
  certificates: {
    name: string;
    hex: string;
    key_id: string;
    issued_at: number;
    not_after: number;
    object_length: number;
    length: number;
    site: string;
    segment: string;
    validator_hex: string;
    digests: number;
    alg: number;
  }[];
  malformed: { name: string; hex: string; outcome: string }[];
  cuts: { certificate: string; length: number; where: string; outcome: string }[];
  verify: {
    name: string;
    certificate?: string;
    hex?: string;
    site: string;
    segment: string;
    keys: string[];
    revocations: { key_id?: string; site?: string; prefix?: string; min_issued_at?: number }[];
    now_ms: number;
    outcome: string;
  }[];
  pieces: { length: number; digests: string[] }[];
  shorts: { name: string; certificate: string; hex: string; outcome: string }[];
  lists: { name: string; hex: string; entries: string[] | null }[];
  list_urls: { playlist: string; list: string }[];
  part_urls: { object: string; range?: [number, number]; certificate: string }[];
}

const vectors: Vectors = JSON.parse(
  readFileSync(new URL('../../../../../spec/vectors/certificate.json', import.meta.url), 'utf8'),
);
const bytes = (h: string): Uint8Array => new Uint8Array(Buffer.from(h, 'hex'));
const { names: representations }: { names: { manifest: string; id: string; name: string }[] } = JSON.parse(
  readFileSync(new URL('../../../../../spec/vectors/mpd.json', import.meta.url), 'utf8'),
);

const named = (name: string): Uint8Array => bytes(vectors.certificates.find((c) => c.name === name)!.hex);
const filling = (n: number): Uint8Array => Uint8Array.from({ length: n }, (_, i) => 31 * i + (i >> 8));

const p256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const crypto: Crypto = {
  digest: async (data) => new Uint8Array(await webcrypto.subtle.digest('SHA-256', data)),
  verify: async (key, signature, data) =>
    webcrypto.subtle.verify(
      p256,
      await webcrypto.subtle.importKey('raw', key, p256, false, ['verify']),
      signature,
      data,
    ),
};

const digestsOf = async (data: Uint8Array): Promise<Uint8Array> => {
  const list: number[] = [];
  for (let at = 0; at < data.length; at += 16384) list.push(...(await crypto.digest(data.slice(at, at + 16384))));
  return new Uint8Array(list);
};

const parsed = (raw: Uint8Array): Certificate => {
  const c = parseCertificate(raw);
  if (typeof c === 'string') throw new Error(c);
  return c;
};

describe('vectors of certificates', () => {
  it.each(vectors.certificates)('parses: $name', (want) => {
    const c = parsed(bytes(want.hex));
    expect({
      name: want.name,
      hex: hex(c.raw),
      key_id: c.keyId,
      issued_at: c.issuedAt,
      not_after: c.notAfter,
      object_length: c.objectLength,
      length: c.length,
      site: c.site,
      segment: c.name,
      validator_hex: hex(c.validator),
      digests: c.digests.length / 32,
      alg: c.alg,
    }).toEqual(want);
  });

  it.each(vectors.malformed)('refuses: $name', ({ hex, outcome }) => {
    expect(parseCertificate(bytes(hex))).toBe(outcome);
  });

  it.each(vectors.cuts)('cut to $length bytes: $where', ({ certificate, length, outcome }) => {
    const raw = new Uint8Array(length);
    raw.set(named(certificate).subarray(0, length));
    expect(parseCertificate(raw)).toBe(outcome);
  });

  it.each(vectors.verify)('verifies: $name', async (v) => {
    const c = parseCertificate(v.hex ? bytes(v.hex) : named(v.certificate!));
    if (typeof c === 'string') {
      expect(c).toBe(v.outcome);
      return;
    }
    const keys = vectors.keys
      .filter((k) => v.keys.includes(k.name))
      .map((k) => ({ keyId: k.key_id, key: bytes(k.public), alg: k.alg }));
    const revocations = v.revocations.map(
      (r): Revocation =>
        r.key_id ? { keyId: r.key_id } : { site: r.site!, prefix: r.prefix!, minIssuedAt: r.min_issued_at! },
    );
    const expected = { site: v.site, name: v.segment };
    expect(await verifyCertificate(c, expected, keys, revocations, v.now_ms, crypto)).toBe(v.outcome);
    // These come before others are looked for.
    if (!/^(bad-signature|wrong-name)$/.test(v.outcome))
      expect(counts(c, v.site, keys, revocations, v.now_ms)).toBe(v.outcome === 'valid' && c.alg === 2);
    expect(withdraws(revocations, c)).toBe(v.outcome === 'revoked' || v.name === 'name before revoked');
  });

  it.each(vectors.shorts)('short: $name', async ({ certificate, hex: raw, outcome }) => {
    const c = parseShort(bytes(raw));
    if (typeof c === 'string') {
      expect(c).toBe(outcome);
      return;
    }
    const expected = { site: 'demo', name: '/media/bbb/720p/seg-1.ts' };
    const keys = vectors.keys.map((k) => ({ keyId: k.key_id, key: bytes(k.public), alg: k.alg }));
    expect(await verifyCertificate(c, expected, keys, [], 1790000001000, crypto)).toBe(outcome);
    if (outcome !== 'valid') return;
    const digests = await digestsOf(filling(c.length));
    expect(await standsFor(c, parsed(named(certificate)), crypto)).toBe(true);
    expect(await standsFor(c, parsed(named('one piece')), crypto)).toBe(false);
    expect(hex((await completeCertificate(c, c.length, digests, crypto))!.raw)).toBe(hex(named(certificate)));
    expect(await completeCertificate(c, c.length + 1, digests, crypto)).toBeUndefined();
    digests[0]! ^= 1;
    expect(await completeCertificate(c, c.length, digests, crypto)).toBeUndefined();
  });

  it.each(representations)('the representation $id has a name', ({ manifest, id, name }) => {
    expect(representationUrl(manifest, id)).toBe(name);
  });

  it.each(vectors.lists)('list: $name', ({ hex, entries }) => {
    expect(parseList(bytes(hex))?.map((c) => c.name)).toEqual(entries ?? undefined);
  });

  it.each(vectors.list_urls)('the list of $playlist', ({ playlist, list }) => {
    expect(listUrl(playlist)).toBe(list);
  });

  it.each(vectors.part_urls)('the certificate of $object $range', ({ object, range, certificate }) => {
    expect(partUrl(object, range && { first: range[0], last: range[1] })).toBe(certificate);
  });

  it.each(vectors.pieces)('digests of $length bytes', async ({ length, digests }) => {
    const data = filling(length);
    const c = { length, digests: bytes(digests.join('')) } as Certificate;
    for (const i of digests.keys()) {
      const piece = data.slice(i * 16384, (i + 1) * 16384);
      expect(await checkPiece(c, i, piece, crypto)).toBe(true);
      expect(await checkPiece(c, i + 1, piece, crypto)).toBe(false);
      expect(await checkPiece(c, i, piece.subarray(1), crypto)).toBe(false);
      piece[piece.length - 1]! ^= 1;
      expect(await checkPiece(c, i, piece, crypto)).toBe(false);
    }
    expect(await checkPiece(c, digests.length, new Uint8Array(), crypto)).toBe(false);
  });
});

describe('properties of certificates', () => {
  const plain = named('plain');

  it('reads a certificate inside a larger buffer', () => {
    const around = new Uint8Array(plain.length + 9);
    around.set(plain, 5);
    expect(hex(parsed(around.subarray(5, 5 + plain.length)).raw)).toBe(hex(plain));
  });

  it('throws nothing on bytes of any kind', () => {
    const changed = fc
      .array(fc.tuple(fc.nat(plain.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 })
      .map((edits) => {
        const raw = plain.slice();
        for (const [at, v] of edits) raw[at] = v;
        return raw;
      });
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 400 }), changed), (raw) => {
        const c = parseCertificate(raw);
        if (typeof c !== 'string') expect(c.digests.length).toBe(32 * Math.ceil(c.length / 16384));
      }),
      { numRuns: 500 },
    );
  });

  it('does not verify after any change', async () => {
    const keys = vectors.keys.map((k) => ({ keyId: k.key_id, key: bytes(k.public), alg: k.alg }));
    await fc.assert(
      fc.asyncProperty(fc.nat(plain.length - 1), fc.integer({ min: 1, max: 255 }), async (at, mask) => {
        const raw = plain.slice();
        raw[at]! ^= mask;
        const c = parseCertificate(raw);
        if (typeof c === 'string') return;
        const expected = { site: c.site, name: c.name };
        expect(await verifyCertificate(c, expected, keys, [], c.issuedAt, crypto)).not.toBe('valid');
      }),
    );
  });

  it('takes a key that is no point for one that signed nothing', async () => {
    const c = parsed(plain);
    const keys = [{ keyId: c.keyId, key: new Uint8Array(65), alg: 1 }];
    expect(await verifyCertificate(c, c, keys, [], c.issuedAt, crypto)).toBe('bad-signature');
  });

  it('tells content apart', () => {
    expect(sameContent(parsed(plain), parsed(named('by seed B')))).toBe(true);
    expect(sameContent(parsed(plain), parsed(named('one piece')))).toBe(false);
  });
});
