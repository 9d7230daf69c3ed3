import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { fromHex } from '../segment/segment.ts';
import { chunkLength } from './boxes.ts';

const file = new URL('../../../../../spec/vectors/chunks.json', import.meta.url);
const { segments } = JSON.parse(readFileSync(file, 'utf8')) as {
  segments: { name: string; hex: string; ends: number[] }[];
};

// As the packager cuts them: internal/wire/cmaf reads the same.
it.each(segments)('chunks are found: $name', ({ hex, ends }) => {
  const data = fromHex(hex);
  const found: number[] = [];
  for (let at = 0, length = chunkLength(data, 0); length; length = chunkLength(data, at)) {
    at += length;
    found.push(at);
  }
  expect(found).toEqual(ends);
});
