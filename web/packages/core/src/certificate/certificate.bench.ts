import { webcrypto } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { bench, describe } from 'vitest';
import { type Certificate, checkPiece, parseCertificate, verifyCertificate } from './index.ts';

// vitest prints each figure as a ratio of the fastest in its group: the baseline is WebCrypto alone.
const vectors = JSON.parse(
  readFileSync(new URL('../../../../../spec/vectors/certificate.json', import.meta.url), 'utf8'),
) as { keys: { key_id: string; public: string }[]; certificates: { name: string; hex: string }[] };
const bytes = (h: string): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.from(h, 'hex'));
const raw = bytes(vectors.certificates.find((c) => c.name === 'plain')!.hex);
const certificate = parseCertificate(raw) as Certificate;
const point = bytes(vectors.keys[0]!.public);
const p256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const key = await webcrypto.subtle.importKey('raw', point, p256, false, ['verify']);
const crypto = {
  digest: async (data: Uint8Array) => new Uint8Array(await webcrypto.subtle.digest('SHA-256', data)),
  verify: (_: Uint8Array, signature: Uint8Array, data: Uint8Array) =>
    webcrypto.subtle.verify(p256, key, signature, data),
};
const keys = [{ keyId: vectors.keys[0]!.key_id, key: point, alg: 1 }];

describe('verification', () => {
  bench('WebCrypto alone', async () => {
    await webcrypto.subtle.verify(p256, key, raw.subarray(-64), raw.subarray(0, -64));
  });
  bench('verifyCertificate', async () => {
    await verifyCertificate(certificate, certificate, keys, [], certificate.issuedAt, crypto);
  });
});

describe('a piece', () => {
  const piece = new Uint8Array(16384);
  bench('WebCrypto alone', async () => {
    await webcrypto.subtle.digest('SHA-256', piece);
  });
  bench('checkPiece', async () => {
    await checkPiece(certificate, 0, piece, crypto);
  });
});
