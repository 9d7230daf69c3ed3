import { describe, expect, it } from 'vitest';
import { parseCertificate } from '../certificate/index.ts';
import { noise, Signer } from '../simulation/film.ts';
import { parseRecord, recordHead } from './record.ts';

const name = '/film/1.ts';
const data = noise(name, 40_000);
const certificate = parseCertificate(new Signer().certify(name, data, 1));
if (typeof certificate === 'string') throw new Error(certificate);
const file = new Uint8Array(Buffer.concat([recordHead(certificate, ['origin', undefined, 'seed']), data]));

describe('a file of the disk', () => {
  it('is read as it was written', () => {
    const kept = parseRecord(file)!;
    expect(kept.certificate).toEqual(certificate);
    expect(kept.sources).toEqual(['origin', 'peer', 'seed']);
    expect(Buffer.from(kept.data).equals(data)).toBe(true);
  });

  it('is none if it is longer or shorter, or has no certificate', () => {
    const long = new Uint8Array([...file, 0]);
    for (const raw of [long, ...[0, 7, 8, 100, file.length - 1].map((n) => file.subarray(0, n))])
      expect(parseRecord(raw)).toBeUndefined();
    expect(parseRecord(new Uint8Array(file.length))).toBeUndefined();
  });

  it('may be any bytes: each that is changed is seen here, or in the certificate or a digest later', () => {
    let seen = 0;
    for (let at = 0; at < file.length - data.length; at++)
      for (const bit of [1, 128]) {
        const raw = file.slice();
        raw[at]! ^= bit;
        const kept = parseRecord(raw);
        if (!kept) seen++;
        else expect(kept.data.length).toBe(data.length);
      }
    expect(seen).toBeGreaterThan(40);
    for (let n = 0; n < 200; n++) parseRecord(noise(`any ${n}`, n * 7));
  });
});
