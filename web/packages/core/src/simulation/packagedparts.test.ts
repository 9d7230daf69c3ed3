/** Pages that play a low-latency stream whose packager signs the parts: they share them without a seed. */
import { expect, it, vi } from 'vitest';
import { Signer } from './film.ts';
import { audience, fine, type Scene, seedId, setUp, share } from './partscene.ts';
import type { PartViewer } from './partviewer.ts';
import { signer } from './scene.ts';

// Virtual time costs real time on a busy machine.
vi.setConfig({ testTimeout: 300_000 });

const packager = new Signer(2);

const scene = ({ seed = false, lateMs = (_n: number): number => 0 } = {}) => {
  const s = setUp({ seed });
  s.broadcast.packager = { signer: packager, lateMs };
  return s;
};

/** Pages that know the packager's key come one a second. */
const come = async (s: Scene, n: number) => {
  for (let i = 0; i < n; i++) {
    s.viewer().engine.setKeys([signer.verifyKey, packager.verifyKey]);
    await s.run(1_000);
  }
};

const good = (viewers: PartViewer[]) => {
  fine(viewers);
  for (const v of viewers) {
    expect(v.unlinked.filter((u) => u.banned)).toEqual([]);
    expect(v.engine.snapshot().totals).toMatchObject({ rejected_bytes: 0, contradictions: 0 });
  }
};

const loads = ({ broadcast }: Scene) => [...broadcast.certificates.values()].reduce((n, c) => n + c.asked, 0);

it('twelve pages share parts without a seed, and few of them load certificates', async () => {
  const s = scene();
  await come(s, 12);
  const before = loads(s);
  await s.run(30_000);
  good(s.viewers);
  expect(share(s.viewers, 40).peer).toBeGreaterThan(0.7);
  // Sixty parts: a source for each of four stripes loads one each. Now and then a page is a source until it has found a parent.
  expect(loads(s) - before).toBeLessThanOrEqual(5 * 61);
  for (const v of s.viewers) expect(v.engine.snapshot().counters.part_certificates ?? 0).toBeLessThan(v.results.length);
});

it('a packager that is late with every third part has the others shared', async () => {
  const s = scene({ lateMs: (n) => (n % 3 ? 0 : 200) });
  await come(s, 6);
  await s.run(30_000);
  good(s.viewers);
  expect(share(s.viewers, 30).peer).toBeGreaterThan(0.4);
});

it('pages go on to share when the seed dies, and load nothing while it lives', async () => {
  const s = scene({ seed: true });
  await come(s, 8);
  await s.run(5_000);
  const before = loads(s);
  await s.run(10_000);
  // Twenty parts: now and then a page has no place.
  expect(loads(s) - before).toBeLessThanOrEqual(4);
  s.network.moves(seedId);
  await s.run(40_000);
  good(s.viewers);
  expect(loads(s)).toBeGreaterThan(before);
  expect(share(s.viewers, 70).peer).toBeGreaterThan(0.5);
});

it('a packager without certificates costs a page few requests', async () => {
  const s = setUp({ seed: false });
  await come(s, 3);
  await s.run(60_000);
  good(s.viewers);
  for (const { asked, there } of s.broadcast.certificates.values()) {
    // Four in a row, then after 4, 8, 16 and 32 s.
    expect(asked).toBeLessThanOrEqual(8);
    expect(there).toBe(0);
  }
  expect(share(s.viewers).origin).toBe(1);
});

it('pages without the key ask for none', async () => {
  const s = scene();
  await audience(s, 3);
  await s.run(10_000);
  expect(loads(s)).toBe(0);
});

it('parts that are not to be stored stay with the page that loaded them', async () => {
  const s = scene();
  s.broadcast.unshared = true;
  await come(s, 4);
  await s.run(10_000);
  good(s.viewers);
  expect(share(s.viewers).origin).toBe(1);
  // Certificates are there: they would share them.
  expect(loads(s)).toBeGreaterThan(0);
  const before = s.viewers.map((v) => v.results.length);
  s.broadcast.unshared = false;
  await s.run(10_000);
  good(s.viewers);
  expect(share(s.viewers, Math.max(...before)).peer).toBeGreaterThan(0.2);
});
