import type { Engine } from '../ports.ts';
import { fromBase64url, idToHex } from '../session/base64.ts';
import type { Welcome } from '../session/messages.ts';

/** Tells an engine what the tracker said of keys, revocations and the time. */
export function inform(
  engine: Pick<Engine, 'setKeys' | 'revoke' | 'setServerTime'>,
  { verify_keys, revocations }: Pick<Welcome, 'verify_keys' | 'revocations'>,
  serverOffsetMs: number,
): void {
  engine.setKeys(
    verify_keys.flatMap(({ key_id, alg, key }) => {
      const bytes = fromBase64url(key);
      return bytes?.length === 65 ? [{ keyId: idToHex(key_id), key: bytes, alg }] : [];
    }),
  );
  engine.revoke(
    revocations.map((r) =>
      'key_id' in r ? { keyId: idToHex(r.key_id) } : { site: r.site, prefix: r.prefix, minIssuedAt: r.min_issued_at },
    ),
  );
  engine.setServerTime(serverOffsetMs);
}
