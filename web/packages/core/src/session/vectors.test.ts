import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parseIncoming } from './messages.ts';

interface Vector {
  name: string;
  from: 'client' | 'tracker' | 'any';
  raw: string;
  ok: boolean;
  decoded?: Record<string, unknown>;
  field?: string;
}

const file = new URL('../../../../../spec/vectors/signal.json', import.meta.url);
const { messages } = JSON.parse(readFileSync(file, 'utf8')) as { messages: Vector[] };

/** What a viewer reads of a message: all that it keeps must be in the vector, the defaults of absent fields aside. */
function kept(parsed: object): object {
  const { site, hint, ...rest } = parsed as { site?: { name: string; hosts: string[] }; hint?: string };
  return { ...rest, ...(site && { site: { name: site.name, hosts: site.hosts } }), ...(hint && { hint }) };
}

describe('vectors of the tracker protocol', () => {
  test('the file is whole', () => {
    expect(messages.filter((vector) => vector.from === 'tracker').length).toBeGreaterThan(60);
  });

  test.each(messages.filter((vector) => vector.from !== 'client'))('$name', ({ raw, ok, decoded }) => {
    const parsed = parseIncoming(raw);
    if (!ok) expect(parsed).toBe('malformed');
    else if (decoded?.unknown) expect(parsed).toBe('unknown');
    else {
      expect(parsed).toBeTypeOf('object');
      expect(decoded).toMatchObject(kept(parsed as object));
      for (const name of ['swarm', 'from', 'link', 'kind', 'sdp', 'candidate', 'reason', 'ticket', 'code']) {
        expect((parsed as never)[name]).toBe(decoded?.[name]);
      }
    }
  });

  test.each(messages.filter((vector) => vector.from === 'client' && vector.ok))('$name is not for a viewer', ({
    raw,
    decoded,
  }) => {
    expect(parseIncoming(raw)).toBe(decoded?.type === 'signal' ? 'malformed' : 'unknown');
  });
});
