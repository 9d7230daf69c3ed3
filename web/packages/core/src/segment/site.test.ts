import { webcrypto } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pieceCount, pieceLength, type SiteConfig, SiteError, SiteRules, segmentId, virtualRanges } from './index.ts';

interface Vectors {
  sites: Record<string, SiteConfig>;
  keys: { name: string; site: string; url?: string; url_hex?: string; key?: string; error?: string }[];
  titles: { name: string; site: string; key: string; explicit?: string; title?: string; error?: string }[];
  credentials: { name: string; url: string; credential: boolean }[];
  segments: { site: string; key: string; range?: [number, number]; name: string; id: string }[];
  pieces: { length: number; pieces: number; last: number }[];
  virtual: { length: number; count: number; first?: [number, number]; last?: [number, number] }[];
}

const vectors: Vectors = JSON.parse(
  readFileSync(new URL('../../../../../spec/vectors/site.json', import.meta.url), 'utf8'),
);
const crypto = {
  digest: async (data: Uint8Array) => new Uint8Array(await webcrypto.subtle.digest('SHA-256', data)),
  verify: async () => false,
};

/** UTF-8, with each byte that is none as a lone surrogate: the nearest that a string comes to it. */
const stringOf = (bytes: Uint8Array): string => {
  const whole = new TextDecoder('utf-8', { fatal: true });
  let s = '';
  for (let i = 0; i < bytes.length; ) {
    let n = 1;
    for (; n <= 4; n++) {
      try {
        s += whole.decode(bytes.subarray(i, i + n));
        break;
      } catch {}
    }
    if (n > 4) s += String.fromCharCode(0xdc00 + bytes[i]!);
    i += n > 4 ? 1 : n;
  }
  return s;
};

const outcome = (f: () => string): { value?: string; error?: string } => {
  try {
    return { value: f() };
  } catch (e) {
    if (!(e instanceof SiteError)) throw e;
    return { error: e.code };
  }
};

describe('vectors of names', () => {
  const sites = Object.fromEntries(Object.entries(vectors.sites).map(([n, c]) => [n, new SiteRules(c)]));

  it.each(vectors.keys)('key: $name', ({ site, url, url_hex, key, error }) => {
    const u = url ?? stringOf(new Uint8Array(Buffer.from(url_hex!, 'hex')));
    expect(outcome(() => sites[site]!.key(u))).toEqual(error ? { error } : { value: key });
  });

  it.each(vectors.titles)('title: $name', ({ site, key, explicit, title, error }) => {
    expect(outcome(() => sites[site]!.title(key, explicit))).toEqual(error ? { error } : { value: title });
  });

  it.each(vectors.credentials)('credential: $name', ({ url, credential }) => {
    expect(new SiteRules({ name: 's', hosts: [] }).hasCredential(url)).toBe(credential);
  });

  it.each(vectors.segments)('segment: $name of $site', async ({ site, key, range, name, id }) => {
    const rules = new SiteRules({ name: site, hosts: [] });
    expect(rules.segmentName(key, range && { first: range[0], last: range[1] })).toBe(name);
    expect(await segmentId(site, name, crypto)).toBe(id);
  });

  it.each(vectors.pieces)('pieces of $length bytes', ({ length, pieces, last }) => {
    expect(pieceCount(length)).toBe(pieces);
    expect(pieceLength(length, pieces - 1)).toBe(last);
    expect(pieceLength(length, pieces)).toBe(0);
  });

  it.each(vectors.virtual)('parts of $length bytes', ({ length, count, first, last }) => {
    const ranges = virtualRanges(length);
    expect(ranges.length).toBe(count);
    expect(ranges.length ? [ranges[0], ranges[count - 1]] : []).toEqual(
      first && last ? [first, last].map(([a, b]) => ({ first: a, last: b })) : [],
    );
  });
});

describe('properties of keys', () => {
  const rules = new SiteRules({
    name: 'p',
    hosts: ['video.example.com'],
    key: { ignore_query: ['session', 'utm_*'] },
  });
  const characters = fc.oneof(
    fc.constantFrom(
      '/',
      '.',
      '..',
      '%',
      '%2e',
      '%2F',
      '%41',
      '?',
      '&',
      '=',
      '+',
      'session',
      'utm_a',
      'a',
      'é',
      '🎬',
      ' ',
      '[',
      '\\',
    ),
    fc.string({ unit: 'binary', maxLength: 3 }),
  );
  const tails = fc.array(characters, { maxLength: 24 }).map((parts) => `/${parts.join('')}`);

  it('the key of a key is the key, in visible ASCII', () => {
    fc.assert(
      fc.property(tails, (tail) => {
        const { value } = outcome(() => rules.key(`https://video.example.com${tail}`));
        if (value === undefined) return;
        expect(value).toMatch(/^\/[!"$-~]*$/);
        expect(rules.key(`http://VIDEO.example.com:80${value}`)).toBe(value);
        expect(outcome(() => rules.title(value)).error ?? 'too-long').toBe('too-long');
      }),
      { numRuns: 500 },
    );
  });

  it('ignored parameters, fragments and the order of names change nothing', () => {
    const name = fc.constantFrom('a', 'b', 'c', 'lang');
    const parts = fc.uniqueArray(name, { maxLength: 4 });
    fc.assert(
      fc.property(parts, fc.string(), (names, noise) => {
        const url = 'https://video.example.com/a';
        const q = names.map((n) => `${n}=1`);
        const sorted = rules.key(`${url}?${[...q].sort().join('&')}`);
        expect(rules.key(`${url}?session=x&${q.join('&')}&utm_x=1#${noise}`)).toBe(sorted);
      }),
    );
  });

  it('throws nothing but its own errors', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (s) => {
        rules.hasCredential(s);
        outcome(() => rules.key(s));
        outcome(() => rules.title(s, s));
      }),
    );
  });
});
