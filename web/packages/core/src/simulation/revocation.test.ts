import { describe, expect, it } from 'vitest';
import type { Revocation } from '../ports.ts';
import { Film } from './film.ts';
import { setUp, signer } from './scene.ts';
import { crypto } from './world.ts';

/** What is taken away, and how long after it comes what else was certified does not matter. */
const taken: [string, Revocation][] = [
  ['a key', { keyId: signer.verifyKey.keyId }],
  // Issued at any time within the hour: a tombstone.
  ['a path', { site: 'demo', prefix: '/', minIssuedAt: 3_600_000 }],
];

describe('what is withdrawn in mid-session', () => {
  it.each(taken)('is neither held, taken nor given any more, and playback goes on: %s', async (_, revocation) => {
    const film = new Film(16, 4000, 300_000);
    const { seed, viewers, viewer, run } = setUp(film);
    viewer();
    await run(9_000);
    viewer();
    await run(9_000);
    expect(viewers.map((v) => v.engine.snapshot().segments > 0)).toEqual([true, true]);
    for (const v of viewers) v.engine.revoke([revocation]);
    const others = () => viewers.map((v) => v.engine.snapshot().totals).map(({ bytes }) => bytes.seed + bytes.peer);
    const [before, sent] = [others(), seed.sent];
    expect(viewers.map((v) => v.engine.snapshot().segments)).toEqual([0, 0]);
    // Seed and newcomer know of nothing: a viewer that does takes nothing of them.
    viewer().engine.revoke([revocation]);
    await run(80_000);
    expect(others()).toEqual([...before, 0]);
    expect(seed.sent - sent).toBeLessThan(300_000);
    for (const v of viewers) {
      expect([v.results.length, v.stalls, v.wrong, v.errors.length]).toEqual([16, 0, 0, 0]);
      expect(v.engine.snapshot()).toMatchObject({ segments: 0, off: null });
      expect(v.unlinked).toEqual([]);
    }
    expect(viewers[2]!.engine.snapshot().totals.reasons['no-cert']).toBeGreaterThan(0);
  });

  it('counts also while a signature is being checked', async () => {
    const film = new Film(3, 4000, 300_000);
    const { viewer, run } = setUp(film);
    let checked = 0;
    const v = viewer(undefined, {
      crypto: {
        ...crypto,
        async verify(...args) {
          const good = await crypto.verify(...args);
          if (!checked++) v.engine.revoke([{ keyId: signer.verifyKey.keyId }]);
          return good;
        },
      },
    });
    await run(20_000);
    expect(checked).toBeGreaterThan(0);
    expect(v.engine.snapshot()).toMatchObject({ segments: 0, totals: { bytes: { seed: 0 } } });
    expect(v.results.length).toBe(3);
  });
});

it('what the engine turned off stays off when the site is on again', async () => {
  const film = new Film(12, 4000, 300_000);
  const { seed, viewer, run } = setUp(film);
  viewer([seed]);
  await run(3_000);
  for (const s of film.segments) film.replace(s.name, `other ${s.name}`);
  const late = viewer([seed], { agreement: { agrees() {}, differs: () => true } });
  const offs: string[] = [];
  late.events.on('off', ({ reason }) => offs.push(reason));
  await run(20_000);
  expect(offs).toEqual(['policy']);
  late.engine.setOff('policy');
  late.engine.setOff(null);
  expect(late.engine.snapshot().off).toBe('policy');
});

const hour = 3_600_000;
it.each([
  ['good by its time', 0, true],
  ['from the future by its time', -hour, false],
  ['expired by its time', 7 * hour, false],
])('the tracker’s time counts, whatever the page’s clock says: a certificate that is %s', async (_, aheadMs, good) => {
  const film = new Film(6, 4000, 300_000);
  const { viewer, run } = setUp(film);
  const v = viewer();
  v.engine.setServerTime(aheadMs);
  await run(30_000);
  expect(v.results.length).toBe(6);
  expect([v.wrong, v.bytes().seed > 0]).toEqual([0, good]);
});
