import { type Figure, type FigureName, figure, kinds } from '@leeway/netcheck';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { pack, shareable, unpack } from './share.ts';

const figures = fc.array(
  fc
    .tuple(
      fc.constantFrom(...(Object.keys(kinds) as FigureName[])),
      fc.constantFrom('up' as const, 'down' as const, 'round-trip' as const),
      fc.double({ min: 0, max: 1e12, noNaN: true }),
    )
    .map(([name, direction, value]): Figure => figure(name, direction, value)),
  { maxLength: 40 },
);

test('a link has the result in it', () => {
  fc.assert(
    fc.property(
      figures,
      fc.webAuthority(),
      fc.integer({ min: 0, max: 4e12 }),
      fc.boolean(),
      fc.constantFrom(undefined, 'blocked' as const, 'broken' as const),
      fc.option(
        fc.record({
          candidates: fc.subarray(['host' as const, 'srflx' as const, 'relay' as const]),
          ipv4: fc.constantFrom('dependent' as const, 'no-answer' as const, 'unknown' as const),
          ipv6: fc.constantFrom('untranslated' as const, 'endpoint-independent' as const),
        }),
        { nil: undefined },
      ),
      (all, server, at, clock, channel, reachability) => {
        const results = {
          ...shareable({ version: 1, server, started_ms: at, figures: all, scores: {} }),
          ...(clock && { one_way: 'clock' as const }),
          ...(channel && { channel }),
          ...(reachability && { reachability }),
        };
        expect(unpack(`#${pack(results)}`)).toEqual(results);
      },
    ),
  );
});

test('a fragment of another kind is no result, and does no harm', () => {
  const packed = (value: unknown) =>
    `#r=${btoa(JSON.stringify(value)).replaceAll('=', '').replaceAll('+', '-').replaceAll('/', '_')}`;
  expect(unpack(packed([1, 's', 5, 0, [['loss', 'u', 0.5]]]))?.figures).toEqual([figure('loss', 'up', 0.5)]);
  for (const bad of [
    7,
    ['dependent', 'none', []],
    ['dependent', 'dependent', ['host', 'host']],
    ['dependent', 'dependent', 'host'],
    ['dependent', 'dependent', ['<b>']],
  ]) {
    expect(unpack(packed([1, 's', 5, 0, [], bad]))).toMatchObject({ figures: [] });
    expect(unpack(packed([1, 's', 5, 0, [], bad]))).not.toHaveProperty('reachability');
  }
  for (const bad of [
    [2, 's', 5, 0, []],
    [1, 7, 5, 0, []],
    [1, 's'.repeat(301), 5, 0, []],
    [1, 's', 'x', 0, []],
    [1, 's', 1e300, 0, []],
    [1, 's', 5, 0, {}],
    [1, 's', 5, 0, [['toString', 'u', 1]]],
    [1, 's', 5, 0, [['loss', 'x', 1]]],
    [1, 's', 5, 0, [['loss', 'u', -1]]],
    [1, 's', 5, 0, [['loss', 'u', null]]],
    [1, 's', 5, 0, Array(101).fill(['loss', 'u', 1])],
    null,
  ]) {
    expect(unpack(packed(bad))).toBeUndefined();
  }
  expect(unpack(`#r=${'A'.repeat(8193)}`)).toBeUndefined();
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json(), fc.base64String()), (text) => {
      unpack(text);
      unpack(`#r=${text}`);
      unpack(packed(text));
    }),
  );
});
