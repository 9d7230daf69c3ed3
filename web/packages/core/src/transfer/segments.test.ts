import { webcrypto } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { rules } from '../simulation/film.ts';
import { createSegments } from './segments.ts';

const crypto = {
  digest: async (data: Uint8Array) => new Uint8Array(await webcrypto.subtle.digest('SHA-256', data as BufferSource)),
  verify: async () => false,
};

describe('segments', () => {
  it('move with the timeline of the player: a deadline is counted from where it has them now', async () => {
    const segments = createSegments(rules, crypto);
    const ref = { url: 'https://video.example.com/film/7.ts', startMs: 14_000, durationMs: 2_000 };
    const first = await segments.resolve(ref, '480p', 0);
    const again = await segments.resolve({ ...ref, startMs: 13_400 }, '480p', 0);
    expect(again).toBe(first);
    expect(again.ref.startMs).toBe(13_400);
  });
});
