import { describe, expect, it } from 'vitest';
import { Film, listOf, Signer } from './film.ts';
import { figures, fine, setUp, signer } from './scene.ts';

const packager = new Signer(2);
const keys = [signer.verifyKey, packager.verifyKey];

/** Four viewers, 5 s apart, of a film that was signed at packaging, and the packager's key. */
const four = async (film: Film, seeded: boolean, know = keys) => {
  const scene = setUp(film);
  const { seed, viewers, viewer, run } = scene;
  for (let n = 0; n < 4; n++) {
    viewer(seeded ? undefined : [...viewers]).engine.setKeys(know);
    await run(5_000);
  }
  await run(80_000);
  return { ...scene, seed };
};

describe('a film that was signed at packaging', () => {
  it('is shared without any seed', async () => {
    const film = new Film(40, 4000, 300_000);
    film.sign(packager);
    const { viewers, run } = await four(film, false, [packager.verifyKey]);
    await run(100_000);
    const f = figures(viewers, film);
    expect(f).toMatchObject(fine);
    expect(viewers.map((v) => v.results.length)).toEqual([40, 40, 40, 40]);
    expect(f.originPerSegment).toBeLessThanOrEqual(1.15);
    const { counters, totals } = viewers[0]!.engine.snapshot();
    expect(counters).toMatchObject({ lists: 1, lists_completed: 40, list_bytes: film.list!.length });
    expect(totals.contradictions).toBe(0);
    expect(new Set(film.beside)).toEqual(new Set(['https://video.example.com/film/index.m3u8.leeway?t=1']));
    expect(film.beside.length).toBe(4);
    for (const v of viewers.slice(1)) expect(v.bytes(12).peer).toBe(28 * 300_000);
  });

  it('is not shared without certificates and without a seed', async () => {
    const film = new Film(20, 4000, 300_000);
    const { viewers } = await four(film, false, [packager.verifyKey]);
    expect(figures(viewers, film)).toMatchObject({ ...fine, originPerSegment: 4 });
    expect(film.beside).toEqual([]);
  });

  it('spares the seed every question', async () => {
    const film = new Film(20, 4000, 300_000);
    film.sign(packager);
    const { viewers, seed } = await four(film, true);
    const f = figures(viewers, film);
    expect(f).toMatchObject(fine);
    expect(seed.sent).toBe(0);
    expect(f.originPerSegment).toBeLessThanOrEqual(1.3);
  });

  it('is not loaded by viewers that know no key of a packager, or send nothing', async () => {
    const film = new Film(3, 4000, 300_000);
    film.sign(packager);
    const { viewer, run } = setUp(film);
    viewer();
    viewer(undefined, { uploads: () => false }).engine.setKeys(keys);
    const off = viewer();
    off.engine.setKeys(keys);
    off.engine.setOff('policy');
    await run(10_000);
    expect(film.beside).toEqual([]);
  });

  it('is shared by the seed where the list is missing, is none, or is not signed', async () => {
    for (const spoil of [
      (film: Film) => {
        film.list = undefined;
      },
      (film: Film) => {
        film.list = new Uint8Array(Buffer.from('<html></html>'));
      },
      (film: Film) => {
        const forged = film.segments.map(({ name }) => packager.short(name, film.content(name), 0));
        for (const e of forged) e[e.length - 1]! ^= 1;
        film.list = listOf(forged);
      },
    ]) {
      const film = new Film(20, 4000, 300_000);
      film.sign(packager);
      spoil(film);
      const { viewers } = await four(film, true);
      const f = figures(viewers, film);
      expect(f).toMatchObject(fine);
      expect(f.afterTwo).toBeGreaterThanOrEqual(0.7);
      expect(viewers[0]!.engine.snapshot().counters.lists_completed).toBeUndefined();
      expect(film.beside.length).toBeLessThanOrEqual(4 * 8);
    }
  });

  it('is played and not shared where the origin sends other bytes', async () => {
    const film = new Film(2, 4000, 300_000);
    film.sign(packager);
    for (const { name } of film.segments) film.replace(name, `other ${name}`);
    const { viewer, run } = setUp(film);
    const v = viewer([]);
    v.engine.setKeys(keys);
    await run(10_000);
    expect([v.results.length, v.wrong, v.stalls]).toEqual([2, 0, 0]);
    expect(v.engine.snapshot()).toMatchObject({ segments: 0, totals: { contradictions: 2 } });
  });

  it('is shared in parts where its objects are too long to be shared whole', async () => {
    const film = new Film(4, 8_000, 9_000_000);
    film.sign(packager);
    const { viewers, viewer, run } = setUp(film);
    viewer([]).engine.setKeys([packager.verifyKey]);
    await run(20_000);
    viewer([viewers[0]!]).engine.setKeys([packager.verifyKey]);
    await run(60_000);
    expect(figures(viewers, film)).toMatchObject(fine);
    expect(viewers.map((v) => v.results.length)).toEqual([4, 4]);
    expect(viewers[1]!.bytes(2).peer).toBe(2 * 9_000_000);
  });

  it('is forgotten with the packager’s key, and certified anew by what was issued after a purge', async () => {
    const film = new Film(8, 4000, 300_000);
    film.sign(packager);
    const { world, viewer, run } = setUp(film);
    const v = viewer([]);
    v.engine.setKeys(keys);
    await run(2_000);
    expect(v.engine.snapshot().segments).toBeGreaterThan(0);
    v.engine.revoke([{ site: 'demo', prefix: '/', minIssuedAt: 1 + world.now() }]);
    expect(v.engine.snapshot().segments).toBe(0);
    const late = viewer([]);
    late.engine.setKeys(keys);
    late.engine.revoke([{ site: 'demo', prefix: '/', minIssuedAt: 1 + world.now() }]);
    await run(1_000);
    expect(late.engine.snapshot().segments).toBe(0);
    film.sign(packager, Math.ceil(world.now()) + 1);
    const later = viewer([]);
    later.engine.setKeys(keys);
    later.engine.revoke([{ site: 'demo', prefix: '/', minIssuedAt: 1 + world.now() }]);
    await run(1_000);
    expect(later.engine.snapshot().segments).toBeGreaterThan(0);
    later.engine.revoke([{ keyId: packager.verifyKey.keyId }]);
    expect(later.engine.snapshot().segments).toBe(0);
  });

  it('is in dispute where a seed has certified other bytes', async () => {
    const film = new Film(6, 4000, 300_000);
    const old = new Film(6, 4000, 300_000);
    film.sign(packager);
    for (const { name } of old.segments) old.replace(name, `other ${name}`);
    // The seed's certificate comes first, the list afterwards.
    const { list } = film;
    film.list = undefined;
    const { viewer, run, seed } = setUp(old);
    old.playlist = film.playlist;
    const v = viewer([seed]);
    v.engine.setKeys(keys);
    await run(2_000);
    const held = v.engine.snapshot().segments;
    expect(held).toBeGreaterThan(0);
    old.list = list;
    await run(20_000);
    const w = viewer([v]);
    w.engine.setKeys(keys);
    await run(20_000);
    const { totals } = w.engine.snapshot();
    expect(totals.disputes + totals.contradictions).toBeGreaterThan(0);
    expect(w.engine.snapshot().segments).toBe(0);
    expect([...v.unlinked, ...w.unlinked]).toEqual([]);
  });
});
