import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures } from './figures.ts';
import { behaviors, buildHostile, Hostile } from './hostile.ts';
import { Stack } from './stack.ts';
import { pause, Viewer } from './viewer.ts';

let browser: Chromium;
let stack: Stack;

beforeAll(async () => {
  buildHostile();
  stack = await Stack.start();
  browser = await Chromium.start();
});
afterAll(async () => {
  await browser?.stop();
  await stack?.stop();
});

const seconds = 10;

test('hostile viewers: no wrong byte, out at the first bad piece, nobody honest blamed, no stall', async () => {
  const options = { level: 2, buffer: 16 };
  const honest = [await Viewer.open(browser, stack.page(options), { name: 'first' })];
  await honest[0]!.until('5 s of film', (seen) => seen.currentTime > 5);
  honest.push(await Viewer.open(browser, stack.page(options), { name: 'second' }));
  await honest[1]!.until('3 s of film', (seen) => seen.currentTime > 3);

  const hostile: Hostile[] = [];
  const stillLinked = new Map<string, number>();
  for (const behave of behaviors) {
    const one = new Hostile(stack, behave, seconds);
    hostile.push(one);
    await pause((seconds - 2) * 1000);
    // Near its end: who still has a link to it?
    let linked = 0;
    for (const viewer of honest) if (await linkedTo(viewer, one.peer)) linked++;
    stillLinked.set(behave, linked);
    await one.done();
    await pause(500);
  }
  const names = new Map(hostile.map((h) => [h.peer, h.behave]));
  const viewers: {
    name: string;
    segments: number;
    wrong: string[];
    stalls: unknown[];
    fatal: unknown[];
    errors: string[];
    played: number;
    blamed: { who: string; reason: string; banned: boolean }[];
  }[] = [];
  for (const v of honest) {
    const [seen, player, told] = [await v.seen(), await v.player(), await v.told()];
    const bad: string[] = [];
    for (const { url, digest } of player.loaded) {
      const path = new URL(url).pathname;
      if (
        digest !==
        createHash('sha256')
          .update(await stack.origin.body(path))
          .digest('hex')
      )
        bad.push(path);
    }
    viewers.push({
      name: v.name,
      segments: player.loaded.length,
      wrong: bad,
      stalls: seen.stalls,
      fatal: player.errors.filter((e) => e.fatal),
      errors: v.consoleErrors(),
      played: seen.currentTime,
      blamed: told.unlinks
        .filter((u) => u.banned || !['closed', 'failed', 'shutdown', 'idle'].includes(u.reason))
        .map((u) => ({ who: names.get(u.peer) ?? 'honest', reason: u.reason, banned: u.banned })),
    });
  }
  const attacks = hostile.map((h) => ({
    behave: h.behave,
    opened: h.of('open').length,
    stillLinked: stillLinked.get(h.behave),
    asked: h.of('asked').length,
    served: Math.max(0, ...h.of('served').map((n) => Number(n.detail.value))),
    byes: h.of('bye').map((n) => n.detail.value),
  }));
  figures('hostile', { viewers, attacks });

  for (const v of viewers) {
    expect(v.segments, `${v.name}: segments compared`).toBeGreaterThan(10);
    expect(v.wrong, v.name).toEqual([]);
    expect(v.stalls, v.name).toEqual([]);
    expect(v.fatal, v.name).toEqual([]);
    expect(v.errors, v.name).toEqual([]);
    expect(
      v.blamed.filter((b) => b.who === 'honest'),
      v.name,
    ).toEqual([]);
  }
  const blamed = (behave: string) =>
    viewers
      .flatMap((v) => v.blamed)
      .filter((b) => b.who === behave)
      .map((b) => b.reason);
  const reached = (behave: string) => attacks.find((a) => a.behave === behave)!.opened;
  // Each attack took place, and ended as the specification says.
  for (const behave of behaviors) expect(reached(behave), `${behave} linked`).toBeGreaterThan(0);
  expect(blamed('flip')).toContain('bad-piece');
  expect(blamed('bad-then-stall')).toContain('bad-piece');
  expect(blamed('garbage')).toContain('protocol-error');
  for (const behave of ['flip', 'bad-then-stall', 'garbage', 'channels'])
    expect(stillLinked.get(behave), behave).toBe(0);
  // Empty promises and silence cost the peer its requests first, and its link only when they go on.
  for (const reason of blamed('false-have')) expect(reason).toBe('false-have');
  for (const reason of blamed('silent')) expect(reason).toBe('stalled');
});

async function linkedTo(viewer: Viewer, peer: string): Promise<boolean> {
  const stats = await viewer.stats();
  // biome-ignore lint/suspicious/noExplicitAny: the library's figures
  return stats.titles.some((title: any) => title.engine?.peers.some((p: any) => p.peer === peer));
}
