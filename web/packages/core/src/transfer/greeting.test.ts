import { expect, it } from 'vitest';
import { createCache } from '../cache/cache.ts';
import { decode } from '../protocol/peer.ts';
import { createGreeting } from './greeting.ts';

const id = (n: number) => n.toString(16).padStart(32, '0');

const setUp = () => {
  const cache = createCache(
    1 << 20,
    () => true,
    () => {},
  );
  const certificates: Record<string, Uint8Array> = { [id(1)]: new Uint8Array(500), [id(2)]: new Uint8Array(8_176) };
  const { greeting } = createGreeting({
    cache,
    self: () => id(8),
    swarm: id(9),
    uploads: () => true,
    wanted: () => true,
    certificate: (segment) => certificates[segment],
  });
  return { cache, greeting };
};

it('an answer says hello, what is held, and the certificates that are wanted and at hand', () => {
  const { cache, greeting } = setUp();
  cache.open(id(1), 100);
  const { said, held } = greeting([id(1), id(7)]);
  expect(said.map((m) => decode('control', m)?.type)).toEqual(['hello', 'have', 'certificate']);
  expect(decode('control', said[2]!)).toMatchObject({ segment: id(1) });
  expect(held).toEqual([id(1)]);
  expect(greeting().said.length).toBe(2);
});

it('an answer leaves out the certificate of a long segment', () => {
  const { greeting } = setUp();
  expect(greeting([id(2), id(1)]).said.map(({ length }) => length)).toEqual([39, 517]);
});
