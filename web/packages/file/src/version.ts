/** The version of a file that a reader is given: its segments are handed on before all are there, so each has to be of it. */

export interface Version {
  /** Bytes of the whole file. */
  readonly length: number;
  /** Whether a response of the origin is of it, as far as the page may read the headers. */
  answers(headers: Headers): boolean;
  /** Whether a certificate is for it. */
  certified(certificate: { objectLength: number; validator: Uint8Array }): boolean;
}

const marks = (headers: Headers) => [headers.get('etag'), headers.get('last-modified')];

/** What the origin says of the file; undefined where it does not say enough to tell one version from another. */
export function versionOf(headers: Headers): Version | undefined {
  const length = Number(headers.get('content-length'));
  const [etag, modified] = marks(headers);
  // The length of a packed answer is that of the packed bytes, and the browser hands on the others.
  if (!(length > 0) || headers.get('content-encoding') || !(etag || modified)) return undefined;
  /** An ETag that the page may not read, by the first certificate. */
  let learned: string | undefined;
  return {
    length,
    answers: (other) => marks(other).join('\n') === marks(headers).join('\n'),
    certified({ objectLength, validator }) {
      const mark = new TextDecoder().decode(validator);
      if (objectLength !== length) return false;
      if (mark === etag || mark === modified) return true;
      if (etag || !/^(W\/)?"/.test(mark)) return false;
      learned ??= mark;
      return learned === mark;
    },
  };
}
