/** What the origin wants not stored is played, and neither kept, announced nor joined with pieces of peers (spec/certificate.md). */
import { expect, it, vi } from 'vitest';
import type { Viewer } from './actors.ts';
import { Film } from './film.ts';
import { figures, fine, setUp } from './scene.ts';

// Virtual time costs real time on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

/** The origin says it to viewers, and not to the seed: else there would be no certificate, and nothing to share. */
const strict = (film: Film, seed: string): void => {
  const fetcher = film.fetcher.bind(film);
  film.fetcher = (network, node, name) => {
    const fetch = fetcher(network, node, name);
    return node === seed ? fetch : async (...how) => ({ ...(await fetch(...how)), unshared: true });
  };
};

/** Whether the first of two viewers has passed something on. */
const passedOn = ([first, second]: Viewer[]) => [
  first!.engine.snapshot().totals.uploaded.direct > 0,
  second!.bytes().peer > 0,
];

it.each([
  ['is not kept and not passed on', true],
  ['is, where the origin does not say so', false],
])('a segment %s', async (_, said) => {
  const film = new Film(16, 4000, 300_000);
  const { seed, viewers, viewer, run } = setUp(film);
  if (said) strict(film, seed.id);
  // It certifies, and sends nothing.
  seed.silent = true;
  for (let n = 0; n < 2; n++) {
    viewer();
    await run(10_000);
  }
  await run(60_000);
  expect(figures(viewers, film)).toMatchObject(fine);
  expect(viewers.map((v) => v.results.length)).toEqual([16, 16]);
  expect(passedOn(viewers)).toEqual([!said, !said]);
});

it.each([
  ['is asked for as a whole', true],
  ['is joined, where the origin does not say so', false],
])('a segment of which peers have sent a part %s', async (_, said) => {
  const film = new Film(6, 4000, 1_000_000);
  // An uplink that brings a part of a segment by the time that it becomes urgent.
  const { seed, viewers, viewer, run } = setUp(film, { up: 60_000, down: 4_000_000 });
  const first = viewer([seed]);
  await run(30_000);
  if (said) strict(film, seed.id);
  const late = viewer([first]);
  await run(60_000);
  expect(figures(viewers, film)).toMatchObject(fine);
  const joined = late.results.filter(({ bytes }) => bytes.peer > 0 && bytes.origin > 0);
  expect([late.results.length, joined.length > 0]).toEqual([6, !said]);
});

it.each([
  ['by its range is not passed on', false, true],
  ['by its range is, where the origin does not say so', false, false],
  ['as a whole is not passed on', true, true],
  ['as a whole is, where the origin does not say so', true, false],
])('an object of 9 MiB that comes %s', async (_, wholes, said) => {
  const film = new Film(4, 10_000, 9 * 2 ** 20 + 12_345);
  const { seed, viewers, viewer, run } = setUp(film, { up: 25_000_000, down: 25_000_000 });
  if (said) strict(film, seed.id);
  film.rangeless = (node) => wholes && node !== seed.id;
  // Certificates are there, the seed's bytes are not: parts can only come from the origin.
  seed.silent = true;
  for (let n = 0; n < 2; n++) {
    viewer();
    await run(6_000);
  }
  await run(50_000);
  expect(viewers.map((v) => v.results.length)).toEqual([4, 4]);
  expect(figures(viewers, film)).toMatchObject(fine);
  expect(passedOn(viewers)).toEqual([!said, !said]);
});
