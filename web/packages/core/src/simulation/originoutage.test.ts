/** The origin answers every segment with an error. */
import { expect, it } from 'vitest';
import { Film } from './film.ts';
import { figures, setUp } from './scene.ts';

it('lets newcomers begin with what the others got, before they had an engine and after', async () => {
  const film = new Film(40, 4000, 300_000);
  const { seed, viewers, viewer, run } = setUp(film);
  for (let i = 0; i < 3; i++) {
    const v = viewer();
    // The first one asked the origin for its first segment before it had joined.
    if (i === 0)
      v.engine.adopt(
        { ...film.segments[0]!, rendition: '480p', bitrate: 600_000 },
        film.content(film.segments[0]!.name),
      );
    await run(5_000);
  }
  await run(20_000);
  seed.stop();
  film.broken = new Error('503');
  const came = viewer(viewers);
  await run(30_000);
  expect(came.startupMs).toBeGreaterThan(0);
  expect(came.startupMs).toBeLessThan(5_000);
  expect([came.stalls, came.errors.length, came.wrong]).toEqual([0, 0, 0]);
  expect(came.results[0]!.bytes).toEqual({ origin: 0, seed: 0, peer: 300_000 });
  // Nothing of the line to the origin is known; what peers bring is what there is to go by.
  expect(came.engine.capacity()).toBeGreaterThan(5_000_000);
  expect(figures(viewers, film)).toMatchObject({ stalls: 0, wrong: 0 });
});

it('is not made up for where no peer holds anything', async () => {
  const film = new Film(3, 4000, 300_000);
  const { viewer, run } = setUp(film);
  film.broken = new Error('503');
  const alone = viewer([]);
  alone.engine.adopt(
    { ...film.segments[2]!, url: 'https://elsewhere.example/x.ts', rendition: '', bitrate: 0 },
    new Uint8Array(9),
  );
  await run(10_000);
  expect(alone.errors).toEqual([film.broken]);
  expect(alone.engine.snapshot().counters.errors).toBeUndefined();
});
