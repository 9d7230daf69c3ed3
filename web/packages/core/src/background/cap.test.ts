import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { UploadCap } from './cap.ts';

interface Case {
  name: string;
  kbps: number;
  sent: { at_us: number; bytes: number; next_us: number }[];
}

const file = new URL('../../../../../spec/vectors/upload-cap.json', import.meta.url);
const { cases } = JSON.parse(readFileSync(file, 'utf8')) as { cases: Case[] };

test.each(cases)('$name', ({ kbps, sent }) => {
  const cap = new UploadCap();
  cap.kbps = kbps;
  for (const { at_us, bytes, next_us } of sent) {
    cap.sent(at_us, bytes);
    expect(cap.at()).toBe(next_us);
  }
});
