/** The attributes of the script tag. */

export interface TagOptions {
  tracker: string;
  site?: string;
  title?: string;
  /** What the attribute says by then: a page with tokens of a few minutes writes the next one there. */
  token?: () => string;
  consent: 'required' | 'given';
  prefetch: boolean;
  disk: boolean;
  /** Where viewers see a badge. */
  badge?: string;
  debug: boolean;
}

/** Reads `data-tracker`, `data-site`, `data-title`, `data-token`, `data-consent`, `data-prefetch`, `data-disk`, `data-badge`, `data-debug` of a script tag. */
export function readTag(data: Record<string, string | undefined>, source: string): TagOptions {
  const text = (value: string | undefined) => value?.trim() || undefined;
  return {
    // A script that a tracker serves itself needs no address: it is where it came from.
    tracker: text(data.tracker) ?? originOf(source),
    site: text(data.site),
    title: text(data.title),
    token: data.token === undefined ? undefined : () => text(data.token) ?? '',
    consent:
      (data.consent !== undefined && data.consent !== 'given') || isSwitchedOff(data.badge) ? 'required' : 'given',
    badge: data.badge,
    prefetch: data.prefetch !== 'off',
    disk: data.disk !== 'off',
    debug: data.debug !== undefined && data.debug !== 'false',
  };
}

/** Whether the viewer has used the badge's switch: until it is used again nothing connects. */
export function isSwitchedOff(badge?: string): boolean {
  try {
    return badge !== undefined && localStorage.leeway === 'off';
  } catch {
    return false; // a page without storage forgets it
  }
}

function originOf(source: string): string {
  return source.split('/').slice(0, 3).join('/');
}
