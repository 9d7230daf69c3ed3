import { expect, test } from 'vitest';
import { assemble, createAssembly } from './assembly.ts';
import { maxPieceMessages } from './limits.ts';
import type { DataMessage } from './peer.ts';

const message = (offset: number, ...payload: number[]): DataMessage => ({
  type: 'data',
  request: 1,
  sentAt: 0,
  offset,
  payload: Uint8Array.from(payload),
});

test('a piece comes together in any order', () => {
  const a = createAssembly(7);
  for (const m of [message(4, 5, 6, 7), message(0, 1, 2), message(2, 3, 4)]) expect(assemble(a, m)).toBeUndefined();
  expect(a).toMatchObject({ data: Uint8Array.of(1, 2, 3, 4, 5, 6, 7), received: 7 });
});

test('what does not fit into its piece', () => {
  const a = createAssembly(100);
  expect(assemble(a, message(2, 3, 4))).toBeUndefined();
  expect(assemble(a, message(98, 1, 2, 3))).toBe('malformed');
  expect(assemble(a, message(3, 4))).toBe('malformed');
  expect(assemble(a, message(0, 1, 2, 3))).toBe('malformed');
  expect(assemble(a, message(1, 2, 3, 4, 5))).toBe('malformed');
  expect(a.received).toBe(2);
  for (let n = 1; n < maxPieceMessages; n++) expect(assemble(a, message(10 + n, 1))).toBeUndefined();
  expect(assemble(a, message(99, 1))).toBe('crumbs');
});
