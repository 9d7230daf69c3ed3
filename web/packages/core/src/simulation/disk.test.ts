import { describe, expect, it, vi } from 'vitest';
import { createDisk, type OpenDisk } from '../disk/disk.ts';
import { createStore } from '../disk/store.ts';
import type { EngineDeps } from '../enginedeps.ts';
import type { OriginFetcher } from '../ports.ts';
import { FakeDisk } from '../testing/disk.ts';
import { wanted } from '../transfer/segments.ts';
import type { Viewer } from './actors.ts';
import { Film, Signer } from './film.ts';
import { setUp, signer } from './scene.ts';

const size = 300_000;
const length = 16;
const filmMs = 80_000;

/** A film, and pages of one browser that play it one after the other. */
const scene = (film = new Film(length, 4000, size), disk = new FakeDisk()) => {
  const made = setUp(film);
  const { seed, viewers, run, world } = made;
  const rules = (disk_bytes: number) => ({ allowed: false, waste_bytes: 0, role: 'full', battery: false, disk_bytes });
  /** A page of that browser. */
  const page = (others = [seed, ...viewers], most = 1 << 30, deps: Partial<EngineDeps> = {}) => {
    const store = createStore(disk.parts(), world);
    const open: OpenDisk = (shared, host) => createDisk(store, shared, host);
    return made.viewer(others, { loadDisk: async () => open, ahead: () => rules(most), ...deps });
  };
  /** A page plays the film, and goes. */
  const before = async (most?: number) => {
    const first = page([seed], most);
    await run(filmMs);
    expect(first).toMatchObject({ stalls: 0, wrong: 0 });
    const { counters } = first.engine.snapshot();
    await leave(first);
    film.ledger.clear();
    seed.sent = 0;
    return counters;
  };
  const leave = async (v: Viewer) => {
    v.engine.stop();
    viewers.splice(viewers.indexOf(v), 1);
    await run(1_000);
  };
  return { ...made, film, disk, page, before, leave };
};

const counters = (v: Viewer) => v.engine.snapshot().counters;
/** Bytes that were read from the disk. */
const read = (v: Viewer) => v.engine.snapshot().totals.disk_bytes ?? 0;
const played = (v: Viewer) => [v.results.length, v.stalls, v.wrong, v.errors.length + (counters(v).errors ?? 0)];
const whole = [length, 0, 0, 0];

describe('a film that was kept on the disk', () => {
  it('is played again without the origin and without peers', async () => {
    const { before, page, film, seed, run, disk } = scene();
    expect(await before()).toMatchObject({ disk_written_bytes: expect.any(Number) });
    expect(disk.segments.length).toBeGreaterThanOrEqual(length - 1);
    const again = page();
    await run(filmMs);
    expect(played(again)).toEqual(whole);
    // The disk opens while the first is asked for.
    expect(film.requests).toBeLessThanOrEqual(2);
    expect(seed.sent).toBeLessThanOrEqual(size);
    expect(read(again)).toBeGreaterThanOrEqual((length - 2) * size);
    const { bytes } = again.engine.snapshot().totals;
    expect(bytes.origin + bytes.seed + bytes.peer).toBeLessThanOrEqual(2 * size);
  });

  it('is not kept where the page has forgotten it while it was read', async () => {
    const { before, page, seed, run, disk, world } = scene();
    await before();
    const store = createStore(disk.parts(), world);
    let forgotten = 0;
    const open: OpenDisk = (shared, host) => {
      const read: typeof store.read = async (id) => {
        const raw = await store.read(id);
        const s = shared.segments.byId.get(id);
        if (s && !wanted(s) && shared.segments.byId.delete(id)) forgotten++;
        return raw;
      };
      return createDisk({ ...store, read }, shared, host);
    };
    const again = page([seed], 1 << 30, { loadDisk: async () => open });
    await run(3_000);
    expect(again.engine.snapshot()).toMatchObject({ off: null });
    await run(filmMs);
    expect(played(again)).toEqual(whole);
    expect(forgotten).toBeGreaterThan(0);
  });

  it('says of each segment where it came from when it came', async () => {
    const { before, page, run, seed } = scene();
    await before();
    const again = page();
    await run(filmMs);
    expect(again.results.slice(4).map(({ source }) => source)).toEqual(Array(length - 4).fill('seed'));
    expect(seed.sent).toBeLessThanOrEqual(size);
  });

  it('is given to others by a page that comes back', async () => {
    const { before, page, viewer, run, seed } = scene();
    await before();
    const again = page();
    await run(2_000);
    const given = seed.sent;
    const other = viewer([again]);
    await run(filmMs);
    expect([played(again), played(other)]).toEqual([whole, whole]);
    // What it asked for before the link was there came from the origin: what its player buffers.
    expect(other.bytes().peer).toBeGreaterThanOrEqual((length / 2) * size);
    expect(seed.sent).toBe(given);
  });

  it('is not played where its bytes are wrong, and is deleted', async () => {
    const { before, page, run, disk } = scene();
    await before();
    const kept = disk.segments;
    // In the certificate, its signature among it, or in the media.
    for (const [n, name] of kept.entries()) {
      const file = disk.files.get(name)!;
      file[n % 3 ? file.length - n * 1000 - 1 : 8 + 200 + n]! ^= 64;
    }
    const again = page();
    await run(10_000);
    const bad = counters(again).disk_bad!;
    await run(filmMs);
    expect(played(again)).toEqual(whole);
    expect(bad).toBeGreaterThan(3);
    expect(read(again)).toBe(0);
    // What came in its place is kept.
    expect(disk.segments.length).toBeGreaterThan(length / 2);
  });

  it.each([
    ['a path', { site: 'demo', prefix: '/', minIssuedAt: 3_600_000 }],
    ['a key', { keyId: signer.verifyKey.keyId }],
  ])('is deleted when it is withdrawn, by %s', async (_, revocation) => {
    const { before, page, run, disk } = scene();
    await before();
    const again = page();
    again.engine.revoke([revocation]);
    await run(5_000);
    expect(disk.segments).toEqual([]);
    await run(filmMs);
    expect([played(again), read(again), disk.segments]).toEqual([whole, 0, []]);
  });

  it('is deleted when it was withdrawn before the disk came, which another tab had', async () => {
    const { before, page, run, disk } = scene();
    await before();
    const release = disk.parts().lock(
      () => {},
      () => {},
    );
    const again = page();
    await run(5_000);
    again.engine.revoke([{ site: 'demo', prefix: '/', minIssuedAt: 3_600_000 }]);
    await run(5_000);
    expect(disk.segments.length).toBeGreaterThanOrEqual(length - 1);
    release();
    await run(5_000);
    expect(disk.segments).toEqual([]);
  });

  it('is deleted when it was withdrawn while it was being written', async () => {
    const { page, run, disk } = scene();
    const first = page();
    await run(9_000);
    expect(disk.segments.length).toBeGreaterThan(0);
    const before = counters(first).disk_written_bytes!;
    let written!: () => void;
    disk.writing = new Promise((resolve) => {
      written = resolve;
    });
    await run(9_000);
    first.engine.revoke([{ site: 'demo', prefix: '/', minIssuedAt: 3_600_000 }]);
    await run(3_000);
    written();
    await run(9_000);
    expect(counters(first).disk_written_bytes).toBeGreaterThan(before);
    expect(disk.segments).toEqual([]);
  });

  it('is played by a new certificate when that beside it has ended', async () => {
    const { before, page, run, seed, film } = scene();
    await before();
    await run(7 * 3_600_000);
    const again = page();
    await run(filmMs);
    expect(played(again)).toEqual(whole);
    expect(read(again)).toBeGreaterThanOrEqual((length - 4) * size);
    expect(film.requests * size + seed.sent).toBeLessThanOrEqual(5 * size);
  });

  it('that was signed at packaging is played by the list of now, and not when that is of another version', async () => {
    const packager = new Signer(2);
    const disk = new FakeDisk();
    const film = new Film(length, 4000, size);
    film.sign(packager);
    const first = scene(film, disk);
    const before = first.page([]);
    before.engine.setKeys([packager.verifyKey]);
    await first.run(filmMs);
    await first.leave(before);
    expect(disk.segments).toHaveLength(length);
    film.ledger.clear();
    const same = first.page([]);
    same.engine.setKeys([packager.verifyKey]);
    await first.run(filmMs);
    await first.leave(same);
    expect(played(same)).toEqual(whole);
    expect(film.requests).toBeLessThanOrEqual(3);

    for (const s of film.segments) film.replace(s.name, `new ${s.name}`);
    film.sign(packager, 1);
    const other = first.page([]);
    other.engine.setKeys([packager.verifyKey]);
    await first.run(filmMs);
    expect(played(other)).toEqual(whole);
    expect(read(other)).toBe(0);
    expect(other.engine.snapshot().totals).toMatchObject({ disputes: 0, contradictions: 0 });
  });

  it('holds playback up for no longer than a tenth of a second, once in half a minute', async () => {
    const { before, page, run, disk } = scene();
    await before();
    const again = page();
    await run(10);
    disk.slow = new Promise(() => {});
    await run(filmMs);
    expect(played(again)).toEqual(whole);
    const { disk_late = 0 } = counters(again);
    expect(disk_late).toBeGreaterThan(0);
    expect(disk_late).toBeLessThanOrEqual(3);
    expect(read(again)).toBeLessThanOrEqual(2 * size);
  });

  it('is not read while peer delivery is off', async () => {
    const { before, page, run, film, disk } = scene();
    await before();
    const again = page();
    again.engine.setOff('control-group');
    const reads = disk.reads;
    await run(filmMs);
    expect(played(again)).toEqual(whole);
    // The list.
    expect(disk.reads - reads).toBeLessThanOrEqual(1);
    expect(film.requests).toBe(length);
  });
});

describe('the disk keeps', () => {
  it('no more than the site allows, and nothing where it takes it back', async () => {
    const { before, page, run, disk } = scene();
    const most = 5 * size;
    await before(most);
    expect(disk.segments.length).toBe(4);
    expect(disk.bytes).toBeLessThanOrEqual(most + 2_000);
    const again = page(undefined, 1);
    await run(5_000);
    expect(disk.segments).toEqual([]);
    again.engine.stop();
  });

  it('nothing where the site does not allow it: the script is not even asked for', async () => {
    const { page, run, disk } = scene();
    const loadDisk = vi.fn();
    page(undefined, 0, { loadDisk });
    await run(filmMs);
    expect([loadDisk.mock.calls.length, disk.segments]).toEqual([0, []]);
  });

  it('nothing of a live stream', async () => {
    const { page, run, disk } = scene();
    const v = page();
    v.live = true;
    await run(filmMs);
    expect(disk.segments.length).toBeLessThanOrEqual(1);
  });

  it.each([
    ['what the origin sends', undefined, length - 1],
    ['nothing that it does not want to be stored', true, 0],
  ])('%s', async (_, unshared, least) => {
    const { page, run, disk, film, seed } = scene();
    const fetcher = film.fetcher.bind(film);
    film.fetcher = (...of) => {
      const fetch = fetcher(...of);
      const other: OriginFetcher = async (...how) => ({ ...(await fetch(...how)), unshared });
      return other;
    };
    // It certifies, and sends nothing.
    seed.silent = true;
    page([seed]);
    await run(filmMs);
    expect(disk.segments.length).toBeGreaterThanOrEqual(least);
    if (unshared) expect(disk.segments).toEqual([]);
  });

  it('nothing when the page has gone', async () => {
    const { before, disk, world, run } = scene();
    await before();
    await run(10_000);
    const [listeners, files] = [disk.listeners, disk.files.size];
    await run(60_000);
    expect([listeners, disk.files.size, world.now() > 0]).toEqual([0, files, true]);
  });

  it('nothing where the script does not come, and the film plays', async () => {
    const { page, run, disk } = scene();
    const v = page(undefined, 1 << 30, { loadDisk: () => Promise.reject(new Error('404')) });
    await run(filmMs);
    expect([played(v), disk.segments, counters(v).script_missing]).toEqual([whole, [], 1]);
  });
});
