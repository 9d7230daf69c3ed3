import type { ByteRange } from '../ports.ts';

/** What of a site's configuration names depend on: a part of `welcome.site` (spec/site.md). */
export interface SiteConfig {
  name: string;
  hosts: string[];
  key?: { ignore_query?: string[]; ignore_path?: string[]; path?: string };
  title?: { drop?: number };
}

export type SiteErrorCode = 'not-http' | 'credentials' | 'foreign-host' | 'bad-path' | 'too-long' | 'bad-title';

/** Thrown by `SiteRules`; the code is one of the spec's errors. */
export class SiteError extends Error {
  constructor(readonly code: SiteErrorCode) {
    super(code);
  }
}

const refuse = (code: SiteErrorCode): never => {
  throw new SiteError(code);
};

const encoder = new TextEncoder();

/** Step 4 of the key rule: the one percent form of a path, or of a part of a query. */
const percentForm = (s: string, query: boolean): string => {
  const stays = query ? /[\w.~!$&'()*+,;=:@/?-]/ : /[\w.~!$&'()*+,;=:@/-]/;
  return s.replace(/%[\da-f]{2}|./gisu, (c) => {
    if (c.length > 2) {
      const decoded = String.fromCharCode(Number.parseInt(c.slice(1), 16));
      return /[\w.~-]/.test(decoded) ? decoded : c.toUpperCase();
    }
    // It would leave alone nothing but what stays.
    return stays.test(c) ? c : encodeURIComponent(c);
  });
};

/** Step 5: dot segments, as RFC 3986 §5.2.4 removes them. */
const removeDots = (path: string): string => {
  const kept: string[] = [];
  const elements = (path || '/').slice(1).split('/');
  elements.forEach((e, i) => {
    const up = e === '..';
    if (up) kept.pop();
    if (!up && e !== '.') kept.push(e);
    else if (i === elements.length - 1) kept.push('');
  });
  return `/${kept.join('/')}`;
};

/** Whether a list of the key rule has a name; a trailing `*` of the list's matches a prefix. */
const listed = (list: string[] | undefined, name: string): boolean =>
  !!list?.some((i) => (i.endsWith('*') ? name.startsWith(i.slice(0, -1)) : name === i));

const parameter = (part: string): string => part.split('=', 1)[0]!;

/** Splits into what stands before the first `at` and what stands behind it. */
const cut = (s: string, at: string): [string, string] => {
  const i = s.indexOf(at);
  return i < 0 ? [s, ''] : [s.slice(0, i), s.slice(i + 1)];
};

/** ASCII alone: with Unicode's rules the Kelvin sign would become a k. */
const lower = (s: string): string => s.replace(/[A-Z]/g, (c) => c.toLowerCase());

/** Derives names for one site. The twin of Go's internal/site. */
export class SiteRules {
  constructor(readonly config: SiteConfig) {}

  /** The key of an absolute URL. Throws a `SiteError`. */
  key(url: string): string {
    const [, scheme, authority, rest] = /^(https?):\/\/([^/?]*)(.*)$/is.exec(cut(url, '#')[0]) ?? refuse('not-http');
    if (authority!.includes('@')) refuse('credentials');
    const port = scheme!.length > 4 ? /:(443)?$/ : /:(80)?$/;
    if (!this.config.hosts.includes(lower(authority!).replace(port, ''))) refuse('foreign-host');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
    if (/[\0-\x1f\x7f\\]|\p{Cs}/u.test(rest!)) refuse('bad-path');
    const [path, query] = cut(rest!, '?');
    const parts = query
      .split('&')
      .filter(Boolean)
      .map((p) => percentForm(p, true))
      .filter((p) => !listed(this.config.key?.ignore_query, parameter(p)))
      .sort((a, b) => {
        const [x, y] = [parameter(a), parameter(b)];
        return x < y ? -1 : +(x > y);
      });
    const key = this.#dropTokens(removeDots(percentForm(path, false))) + (parts.length ? `?${parts.join('&')}` : '');
    return key.length > 1024 ? refuse('too-long') : key;
  }

  /** The title of a manifest: the explicit one, else from the manifest's key. Throws a `SiteError`. */
  title(manifestKey: string, explicit?: string): string {
    let title = explicit ?? '';
    if (title) {
      if (encoder.encode(title).length > 512 || /\p{Cc}|\p{Cs}/u.test(title)) refuse('bad-title');
      return title;
    }
    const [path, query] = cut(manifestKey, '?');
    if (path[0] !== '/') refuse('bad-path');
    title = path
      .split('/')
      .slice(0, -1 - (this.config.title?.drop ?? 0))
      .join('/');
    title = (title || '/') + (query && `?${query}`);
    return title.length > 512 ? refuse('too-long') : title;
  }

  /** The name of a whole object, or of a range of its bytes. */
  segmentName(key: string, range?: ByteRange): string {
    return range ? `${key}#${range.first}-${range.last}` : key;
  }

  /** Whether a manifest's URL, or a name, shows that its content is not for everyone (spec/site.md, "Credentials"). */
  hasCredential(url: string): boolean {
    const [address, query] = cut(cut(url, '#')[0], '?');
    const names = query.split('&').map((p) => lower(percentForm(parameter(p), true)));
    return (
      /^[^/]*\/\/[^/]*@/.test(address) ||
      names.some((n) =>
        /^((access_)?token|__token__|auth|sig(nature)?|policy|key-pair-id|hdn(ts|ea|tl)|jwt|expires|st|x-(amz|goog)-.*)$/s.test(
          n,
        ),
      ) ||
      (names.includes('e') && names.includes('h'))
    );
  }

  /** The end of step 5, and step 6. */
  #dropTokens(path: string): string {
    const pattern = this.config.key?.path?.slice(1, -1).split('/') ?? [];
    let elements = path.slice(1).split('/');
    const last = elements.length - 1;
    elements = elements.filter((e, i) => i === last || !listed(this.config.key?.ignore_path, e));
    if (elements.length > pattern.length && pattern.every((p, i) => (p === '{}' ? elements[i] : p === elements[i])))
      elements = elements.filter((_, i) => pattern[i] !== '{}');
    return `/${elements.join('/')}`;
  }
}
