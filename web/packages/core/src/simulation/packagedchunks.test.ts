/** Pages that play low-latency DASH whose packager signs the chunks: they share them without a seed. */
import { expect, it, vi } from 'vitest';
import { ChunkBroadcast, ChunkViewer } from './chunks.ts';
import { Signer } from './film.ts';
import { fine, gather, newNetwork, seedId, share } from './partscene.ts';
import { PartSeed } from './partseed.ts';
import { signer } from './scene.ts';

// Virtual time costs real time on a busy machine.
vi.setConfig({ testTimeout: 300_000 });

const packager = new Signer(2);

interface Options {
  seed?: boolean;
  lateMs?(n: number): number;
  signed?: boolean;
}

const scene = ({ seed = false, lateMs = () => 0, signed = true }: Options = {}) => {
  const { network } = newNetwork();
  const broadcast = new ChunkBroadcast(network);
  if (signed) broadcast.packager = { signer: packager, lateMs };
  const seeds = seed ? [new PartSeed(seedId, network, signer, [broadcast])] : [];
  const s = gather(network, seeds, (own, { deps }) => new ChunkViewer(own, network, broadcast, signer, deps));
  /** Pages that know the packager's key come one a second. */
  const come = async (n: number) => {
    for (let i = 0; i < n; i++) {
      s.viewer().engine.setKeys([signer.verifyKey, packager.verifyKey]);
      await s.run(1_000);
    }
  };
  return { network, broadcast, come, ...s };
};

type Scene = ReturnType<typeof scene>;

const loads = ({ broadcast }: Scene) => [...broadcast.certificates.values()].reduce((n, c) => n + c.asked, 0);

const good = ({ viewers }: Scene) => {
  fine(viewers);
  for (const v of viewers) {
    expect(v.unlinked.filter((u) => u.banned)).toEqual([]);
    expect(v.engine.snapshot().totals).toMatchObject({ rejected_bytes: 0, contradictions: 0 });
  }
};

it('six pages share chunks without a seed, by a source that loads their certificates', async () => {
  const s = scene();
  await s.come(6);
  const before = loads(s);
  await s.run(40_000);
  good(s);
  // Five in six, at most.
  expect(share(s.viewers, 10).peer).toBeGreaterThan(0.7);
  // Twenty segments of four chunks and an end.
  expect(loads(s) - before).toBeLessThanOrEqual(150);
});

it('a packager that is late with every third chunk has all of them shared', async () => {
  const s = scene({ lateMs: (n) => (n % 3 ? 0 : 150) });
  await s.come(6);
  await s.run(40_000);
  good(s);
  expect(share(s.viewers, 6).peer).toBeGreaterThan(0.7);
});

it('pages go on to share when their source leaves without a word', async () => {
  const s = scene();
  await s.come(6);
  await s.run(20_000);
  const source = s.viewers.find((v) => v.results.slice(-5).every((r) => r.source === 'origin'))!;
  s.network.moves(source.id);
  source.stop();
  const left = s.viewers.filter((v) => v !== source);
  const before = left.map((v) => v.results.length);
  await s.run(30_000);
  fine(left);
  expect(share(left, Math.max(...before)).peer).toBeGreaterThan(0.5);
});

it('pages go on to share when the seed dies, and load nothing while it lives', async () => {
  const s = scene({ seed: true });
  await s.come(6);
  await s.run(5_000);
  const before = loads(s);
  await s.run(10_000);
  expect(loads(s) - before).toBeLessThanOrEqual(4);
  s.network.moves(seedId);
  await s.run(40_000);
  good(s);
  expect(share(s.viewers, 12).peer).toBeGreaterThan(0.5);
});

it('a packager without certificates costs a page few requests', async () => {
  const s = scene({ signed: false });
  await s.come(4);
  await s.run(60_000);
  good(s);
  expect(share(s.viewers).origin).toBe(1);
  // Four chunks in a row, then one after 4, 8, 16 and 32 s; three times each, and what was begun then.
  for (const { asked } of s.broadcast.certificates.values()) expect(asked).toBeLessThanOrEqual(36);
});

it.each([true, false])('what the origin wants not stored is not passed on: %s', async (unshared) => {
  const s = scene();
  s.broadcast.unshared = unshared;
  await s.come(3);
  await s.run(20_000);
  good(s);
  expect(share(s.viewers).peer > 0).toBe(!unshared);
});

it('pages without the key ask for none', async () => {
  const s = scene();
  for (let i = 0; i < 3; i++) s.viewer();
  await s.run(10_000);
  expect(loads(s)).toBe(0);
  expect(share(s.viewers).origin).toBe(1);
});
