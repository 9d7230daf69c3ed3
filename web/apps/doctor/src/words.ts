import type { Finding } from '../../../packages/panel/src/index.ts';

/** What the fields say; empty where nothing was written. */
export interface Wanted {
  /** Origin of the page that is asked for. */
  page: string;
  manifest: string;
  site: string;
  title: string;
  token: string;
}

/** The origin of an address that was pasted, which may be that of the page with its path. */
export function originOf(text: string): string {
  try {
    const { origin } = new URL(text);
    return origin === 'null' ? text : origin;
  } catch {
    return text;
  }
}

/** Fills the fields in again. A token stays out of addresses. */
export function fragmentOf({ token: _, ...wanted }: Wanted): string {
  const given = Object.entries(wanted).filter(([, value]) => value);
  return `#${new URLSearchParams(given)}`;
}

/** Of the checks that say something here: this page has no player, and no title without a manifest. */
export function shown(check: string, withManifest: boolean): boolean {
  if (/^(player|piece|consent|signed)$/.test(check)) return false;
  return withManifest || !/^(site|seed|links)$/.test(check);
}

export function sentenceOf(findings: Finding[], { page }: Pick<Wanted, 'page'>): string {
  const errors = findings.filter(({ status }) => status === 'error').length;
  const of = page ? `Pages of ${page}` : 'Pages of this host';
  if (errors > 0) return errors === 1 ? 'One thing is wrong.' : `${errors} things are wrong.`;
  return `${of} can share, from here.`;
}
