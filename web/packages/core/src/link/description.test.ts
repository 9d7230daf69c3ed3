import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Candidate } from './candidates.ts';
import { DescriptionError, parseDescription, writeDescription } from './description.ts';

interface Vector {
  name: string;
  sdp: string;
  ok: boolean;
  field?: string;
  decoded?: {
    ufrag: string;
    password: string;
    fingerprint: string;
    setup: string;
    mid: string;
    max_message: number;
    init?: string;
    candidates: Candidate[];
    dropped: number;
  };
}

const file = new URL('../../../../../spec/vectors/sdp.json', import.meta.url);
const vectors = JSON.parse(readFileSync(file, 'utf8')) as { descriptions: Vector[]; candidates: { text: string }[] };

const problem = (sdp: string) => {
  try {
    parseDescription(sdp);
  } catch (error) {
    if (error instanceof DescriptionError) return error.field;
    throw error;
  }
  return undefined;
};

/** Every line that a description may have. */
const written = new RegExp(
  [
    '^(v=0|o=- 1 1 IN IP4 0\\.0\\.0\\.0|s=-|t=0 0|m=application 9 UDP/DTLS/SCTP webrtc-datachannel|c=IN IP4 0\\.0\\.0\\.0',
    'a=(group:BUNDLE [!-~]{1,64}|ice-ufrag:[\\w+/]{4,32}|ice-pwd:[\\w+/]{22,64}|ice-options:trickle',
    'fingerprint:sha-256 [0-9A-F]{2}(:[0-9A-F]{2}){31}|setup:(actpass|active|passive)|mid:[!-~]{1,64}|sctp-port:5000',
    'max-message-size:\\d{1,10}|sctp-init:[\\w+/]+=*',
    'candidate:[\\w+/]{1,32} 1 udp \\d{1,10} [0-9a-z.:-]+ \\d{1,5} typ (host|(srflx|prflx|relay) raddr (::|0\\.0\\.0\\.0) rport 0)( network-cost [1-9]\\d{0,2})?))$',
  ].join('|'),
);

/** What holds of any text. */
function check(sdp: string): void {
  if (problem(sdp)) return;
  const parsed = parseDescription(sdp);
  const text = writeDescription(parsed);
  const lines = text.slice(0, -2).split('\r\n');
  expect(lines.filter((line) => !written.test(line))).toEqual([]);
  expect(parseDescription(text)).toEqual({ ...parsed, dropped: 0 });
}

describe('descriptions', () => {
  test('the file is whole', () => expect(vectors.descriptions.length).toBeGreaterThan(80));

  test.each(vectors.descriptions)('$name', ({ sdp, ok, field, decoded }) => {
    expect(problem(sdp)).toBe(ok ? undefined : field);
    check(sdp);
    if (!decoded) return;
    const { fingerprint, maxMessage, sctpInit, ...rest } = parseDescription(sdp);
    expect({
      ...rest,
      fingerprint: fingerprint.replaceAll(':', '').toLowerCase(),
      max_message: maxMessage,
      ...(sctpInit && { init: sctpInit }),
    }).toEqual(decoded);
  });

  test('nothing but known lines leaves a description, however it is mangled', () => {
    // A linear congruential generator: a failure repeats.
    let state = 1;
    const below = (n: number) => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return Math.floor((state / 2 ** 32) * n);
    };
    const texts = [
      ...vectors.descriptions.map(({ sdp }) => sdp),
      ...vectors.candidates.map(({ text }) => `a=${text}\n`),
    ];
    const spice = [
      '\r',
      '\n',
      '\r\n',
      '\t',
      ' ',
      ':',
      '=',
      'a=',
      '0',
      '::',
      '.',
      '%',
      '\u0000',
      '\u2028',
      '\u212a',
      'candidate:',
      'é',
    ];
    let taken = 0;
    for (let i = 0; i < 3_000; i++) {
      let sdp = texts[below(texts.length)]!;
      const first = vectors.descriptions[below(3)]!.sdp;
      if (!sdp.startsWith('v=0')) sdp = first + sdp;
      for (let changes = below(4); changes > 0; changes--) {
        const at = below(sdp.length + 1);
        const cut = below(4) === 0 ? below(12) : 0;
        sdp = sdp.slice(0, at) + spice[below(spice.length)] + sdp.slice(at + cut);
      }
      check(sdp);
      if (!problem(sdp)) taken++;
    }
    expect(taken).toBeGreaterThan(300);
  });
});
