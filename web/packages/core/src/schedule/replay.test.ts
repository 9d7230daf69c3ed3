import { readFileSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { Film } from '../simulation/film.ts';
import { setUp } from '../simulation/scene.ts';
import { createRecorder, replay } from '../testing/recorder.ts';

const file = (name: string) => new URL(`../../../../../spec/vectors/${name}`, import.meta.url);

/** A viewer on a slow line, a peer and a seed slower than the film: waits, requests, urgent segments. */
const record = async () => {
  const film = new Film(7, 4000, 80_000);
  const { seed, viewers, viewer, run } = setUp(film, { up: 15_000, down: 100_000 });
  viewer();
  await run(6_000);
  const recorder = createRecorder();
  viewer([seed, ...viewers], { record: recorder.record });
  await run(60_000);
  return recorder.dump();
};

it('replays what it recorded', async () => {
  const dump = await record();
  expect(dump.split('\n').length).toBeGreaterThan(20);
  expect(replay(dump)).toEqual([]);
  // For the tests of both languages: LEEWAY_UPDATE=1 npx vitest run packages/core/src/schedule/replay.test.ts
  if (process.env.LEEWAY_UPDATE) writeFileSync(file('recorded-ts.jsonl'), `${dump}\n`);
});

it.each(['recorded-go.jsonl', 'recorded-ts.jsonl'])('replays %s to the same actions', (name) => {
  const dump = readFileSync(file(name), 'utf8');
  expect(dump.split('\n').length).toBeGreaterThan(20);
  expect(replay(dump)).toEqual([]);
  // Not because nothing is compared: a recording that was tampered with differs.
  expect(replay(dump.replaceAll('"reason":"near"', '"reason":"race"')).length).toBeGreaterThan(0);
});
