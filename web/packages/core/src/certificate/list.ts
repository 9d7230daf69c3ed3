import { type Certificate, parseShort } from './certificate.ts';

const head = 8;
const maxEntries = 65_536;
const maxSize = 33_554_432;

/** A URL with more behind its path; the query stays. */
const behind = (url: string, more: string): string =>
  url.replace(/[?#].*|$/s, (rest) => `.${more}${rest.split('#')[0]}`);

/** The URL of the list of a playlist. */
export const listUrl = (playlist: string): string => behind(playlist, 'leeway');

/** The URL of a packager's certificate of a part, which has a URL of its own or is a range of an object. */
export const partUrl = (object: string, range?: { first: number; last: number }): string =>
  behind(object, range ? `${range.first}-${range.last}.leeway` : 'leeway');

/** The name of a representation of an MPD (spec/site.md): it stands for the URL of a playlist. */
export const representationUrl = (manifest: string, id: string): string =>
  behind(manifest, encodeURIComponent(id).replaceAll('~', '%7E').replaceAll('%', '~'));

/**
 * Reads a list of short certificates (spec/packaging.md). Entries of an algorithm that this version does not know are left
 * out; no signature is verified. Undefined for what is no list.
 */
export function parseList(raw: Uint8Array): Certificate[] | undefined {
  if (raw.length < head || raw.length > maxSize || String.fromCharCode(...raw.subarray(0, 4)) !== 'LWL1')
    return undefined;
  const view = new DataView(raw.buffer, raw.byteOffset, raw.length);
  const count = view.getUint32(4);
  if (count > maxEntries) return undefined;
  const list = new Map<string, Certificate>();
  let at = head;
  for (let i = 0; i < count; i++) {
    if (at + 2 > raw.length) return undefined;
    const end = at + 2 + view.getUint16(at);
    if (end > raw.length) return undefined;
    const c = parseShort(raw.subarray(at + 2, end));
    at = end;
    if (c === 'unknown-alg') continue;
    if (c === 'malformed' || list.has(c.name)) return undefined;
    list.set(c.name, c);
  }
  return at === raw.length ? [...list.values()] : undefined;
}
