/** The list of what is on the disk, as it is kept beside the files: what is deleted without being read is found in it. */

export interface Entry {
  /** The segment's ID, which is the name of its file. */
  readonly id: string;
  /** Of the file. */
  readonly bytes: number;
  /** Date of the last use, ms since the epoch. */
  used: number;
  /** What revocations go by. */
  readonly site: string;
  readonly name: string;
  readonly keyId: string;
  readonly issuedAt: number;
  /** Until when the certificate in the file counts by itself, in tracker time. */
  readonly notAfter: number;
}

/** More are not listed. */
export const mostEntries = 4_096;

const whole = (...values: unknown[]) => values.every((v) => Number.isSafeInteger(v) && (v as number) >= 0);

export const printEntries = (entries: Iterable<Entry>): string =>
  JSON.stringify(
    [...entries].map((e) => [e.id, e.bytes, e.used, e.site, e.name, e.keyId, e.issuedAt, e.notAfter] as const),
  );

/** The entries of a list that are well-formed, each once; none of what is no list. */
export const parseEntries = (text: string): Entry[] => {
  const found = new Map<string, Entry>();
  try {
    for (const [id, bytes, used, site, name, keyId, issuedAt, notAfter] of JSON.parse(text)) {
      if (!/^[0-9a-f]{32}$/.test(id) || !whole(bytes, used, issuedAt, notAfter)) continue;
      if ([id, site, name, keyId].some((s) => typeof s !== 'string')) continue;
      found.set(id, { id, bytes, used, site, name, keyId, issuedAt, notAfter });
    }
  } catch {
    // What was read before the fault is as good as the rest.
  }
  return [...found.values()].slice(-mostEntries);
};
