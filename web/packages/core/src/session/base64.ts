/** Base64url without padding, as tracker messages carry bytes; the library itself names peers and segments in hex. */

import { fromHex, hex } from '../segment/index.ts';

/** Decodes base64url without padding. Undefined for anything that is another spelling of the same bytes. */
export function fromBase64url(text: string): Uint8Array | undefined {
  try {
    const binary = atob(text.replace(/-/g, '+').replace(/_/g, '/'));
    const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0));
    // One ID has one name: what does not come back the same is refused.
    return toBase64url(bytes) === text ? bytes : undefined;
  } catch {
    return undefined;
  }
}

/** Encodes bytes as base64url without padding. */
export function toBase64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replace(/\+/g, '-')
    .replace(/\//g, '_')
    .replace(/=/g, '');
}

/** The hex characters of an ID that the tracker spelled in base64url. The ID has been validated. */
export function idToHex(id: string): string {
  return hex(fromBase64url(id)!);
}

/** The other way. */
export function hexToId(text: string): string {
  return toBase64url(fromHex(text));
}
