/** The attributes of the script tag. */

export interface TagOptions {
  tracker: string;
  site?: string;
  title?: string;
  /** What the attribute says by then: a page with tokens of a few minutes writes the next one there. */
  token?: () => string;
  consent: 'required' | 'given';
  prefetch: boolean;
  debug: boolean;
}

/** Reads `data-tracker`, `data-site`, `data-title`, `data-token`, `data-consent`, `data-prefetch`, `data-debug` of a script tag. */
export function readTag(data: Record<string, string | undefined>, source: string): TagOptions {
  const text = (value: string | undefined) => value?.trim() || undefined;
  return {
    // A script that a tracker serves itself needs no address: it is where it came from.
    tracker: text(data.tracker) ?? originOf(source),
    site: text(data.site),
    title: text(data.title),
    token: data.token === undefined ? undefined : () => text(data.token) ?? '',
    consent: data.consent !== undefined && data.consent !== 'given' ? 'required' : 'given',
    prefetch: data.prefetch !== 'off',
    debug: data.debug !== undefined && data.debug !== 'false',
  };
}

function originOf(source: string): string {
  return source.split('/').slice(0, 3).join('/');
}
