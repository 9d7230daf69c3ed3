import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { maxAsked } from '../protocol/limits.ts';
import { typeFollow } from '../protocol/parts.ts';
import { createAllowance } from './allowance.ts';
import { createCertificateQueue } from './certqueue.ts';

interface Step {
  do: 'heard' | 'said' | 'served';
  type: Parameters<ReturnType<typeof createAllowance>['heard']>[0];
  count: number;
  at: number;
  times: number;
  every: number;
}

const vectors = JSON.parse(readFileSync(new URL('../../../../../spec/vectors/peer.json', import.meta.url), 'utf8'));

/** Messages of parts, in the order of their type bytes. */
const ofParts = ['follow', 'place', 'subscribe', 'unsubscribe', 'end', 'part', 'enough', 'hold'];
/** The type byte of a message of parts; below the first of them: it is another message. */
const byteOf = (type: string) => typeFollow + ofParts.indexOf(type);

const cases: { name: string; limit: string | null; steps: Step[] }[] = [...vectors.rates, ...vectors.parts_rates];

describe('rates of a link', () => {
  it.each(cases)('$name', ({ limit, steps }) => {
    let now = 0;
    const may = createAllowance(() => now);
    let over: string | undefined;
    for (const s of steps) {
      for (let n = 0; n < s.times; n++) {
        expect(over).toBeUndefined();
        now = 1_000_000 + s.at + n * s.every + 0.3;
        const byte = byteOf(s.type);
        if (s.do === 'served') may.served();
        else if (byte >= typeFollow && s.do === 'said') may.saidType(byte);
        else if (byte >= typeFollow) over = may.heardType(byte);
        else if (s.do === 'said') may.said(s.type, s.count);
        else over = may.heard(s.type, s.count);
      }
    }
    expect(over).toBe(limit ?? undefined);
  });

  it('takes one ack for each message of the background', () => {
    const may = createAllowance(() => 0);
    for (let n = 0; n < 1000; n++) may.sentBehind();
    for (let n = 0; n < 1000 + 256; n++) expect(may.acked()).toBeUndefined();
    expect(may.acked()).toBe('strays');
  });
});

describe('certificates that a peer waits for', () => {
  it('are shown as it reads them, and those beyond what may wait are refused', () => {
    let room = 3;
    const shown: string[] = [];
    const refused: string[] = [];
    const shows = createCertificateQueue(
      () => room > 0,
      (segment) => {
        room--;
        shown.push(segment);
      },
      (segment) => refused.push(segment),
    );
    const segments = Array.from({ length: maxAsked + 5 }, (_, n) => String(n));
    shows.ask(['first', 'first']);
    shows.ask(segments);
    expect(shown).toEqual(['first', 'first', '0']);
    expect(refused).toEqual(segments.slice(maxAsked));
    room = Number.POSITIVE_INFINITY;
    shows.pump();
    expect(shown.slice(2)).toEqual(segments.slice(0, maxAsked));
  });
});
