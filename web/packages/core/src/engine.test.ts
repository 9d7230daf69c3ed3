import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import type { Disk } from './disk/disk.ts';
import { createEngine } from './engine.ts';
import { Film, rules } from './simulation/film.ts';
import { setUp } from './simulation/scene.ts';
import { crypto as real } from './simulation/world.ts';
import { createStats } from './stats/stats.ts';
import { FakeClock, settle } from './testing/clock.ts';
import { createCredit } from './transfer/credit.ts';
import { createLine } from './transfer/line.ts';

const crypto = {
  digest: async (data: Uint8Array) => new Uint8Array(createHash('sha256').update(data).digest()),
  verify: async () => false,
};

it('asks the origin for a segment that was forgotten while the disk was read', async () => {
  const clock = new FakeClock();
  let read = () => {};
  const disk: Disk = {
    asked: ({ name }) =>
      name === '/film/0.ts'
        ? new Promise<void>((resolve) => {
            read = resolve;
          })
        : undefined,
    stop() {},
  };
  const engine = createEngine({
    clock,
    crypto,
    rules,
    line: createLine(clock),
    stats: createStats(),
    credit: createCredit(clock),
    self: () => '1'.repeat(32),
    swarm: '5'.repeat(32),
    uploads: () => true,
    hurry() {},
    notice() {},
    emit() {},
    ahead: () => ({ allowed: false, waste_bytes: 0, role: 'full', battery: false, disk_bytes: 1 }),
    loadDisk: async () => () => disk,
  });
  await settle();
  const ref = (n: number) => ({
    url: `https://video.example.com/film/${n}.ts`,
    startMs: 2_000 * n,
    durationMs: 2_000,
  });
  const asked: number[] = [];
  const load = (n: number) =>
    engine.load(
      {
        ...ref(n),
        rendition: 'r',
        bitrate: 1_000_000,
        adaptive: false,
        deadlineMs: () => 0,
        upcoming: [1, 2, 3, 4].map((more) => ref(n + more)),
        live: false,
        async origin() {
          asked.push(n);
          return { data: new ArrayBuffer(1), status: 200, url: '' };
        },
      },
      () => {},
    ).result;
  const waiting = load(0);
  // More than are remembered.
  for (let n = 5; n < 1_100; n += 5) {
    await load(n);
    await settle();
  }
  expect(asked).not.toContain(0);
  read();
  await settle();
  expect(asked).toContain(0);
  expect(await waiting).toMatchObject({ source: 'origin', status: 200 });
  engine.stop();
  expect(clock.pending).toBe(0);
});

it('drops pieces of a segment that was forgotten while they were checked', async () => {
  const film = new Film(1_200, 2_000, 20_000);
  const { viewer, run } = setUp(film);
  const held: (() => void)[] = [];
  let holds = true;
  const digest = async (data: Uint8Array) => {
    if (holds && data.length > 1_000)
      await new Promise<void>((resolve) => {
        held.push(resolve);
      });
    return real.digest(data);
  };
  const { engine } = viewer(undefined, { crypto: { ...real, digest } }, false, () => {});
  const load = (n: number) => {
    const { name, url } = film.segments[n]!;
    return engine.load(
      {
        ...film.segments[n]!,
        rendition: 'r',
        bitrate: 80_000,
        adaptive: false,
        deadlineMs: () => 0,
        upcoming: film.segments.slice(n + 1, n + 5),
        live: false,
        origin: async () => ({ data: film.content(name).slice().buffer as ArrayBuffer, status: 200, url }),
      },
      () => {},
    ).result;
  };
  await load(0);
  await run(1_000);
  expect(held.length).toBeGreaterThan(0);
  holds = false;
  // More than are remembered.
  for (let n = 5; n < 1_190; n += 5) {
    await load(n);
    await run(100);
  }
  for (const resolve of held) resolve();
  await run(100);
  expect(engine.snapshot()).toMatchObject({ off: null });
  engine.stop();
});
