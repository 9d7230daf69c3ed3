import { createHash } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Chromium } from './browser.ts';
import { figures } from './figures.ts';
import { type Behavior, behaviors, buildHostile, Hostile, unasked } from './hostile.ts';
import { metrics, sum } from './service.ts';
import { Stack } from './stack.ts';
import { pause, Viewer } from './viewer.ts';

let browser: Chromium;
let stack: Stack;

beforeEach(async () => {
  buildHostile();
  stack = await Stack.start();
  browser = await Chromium.start();
});
afterEach(async () => {
  await browser?.stop();
  await stack?.stop();
});

/** Each attack goes on until the wronged viewer has ended it, at most so long. */
const seconds = 60;
/** How long after the first request, or after the link opened where no request is needed, a hostile viewer is out at the latest, ms:
 *  the bounds of the specification with room for a busy machine. */
const bounds: Record<Behavior, number> = {
  flip: 6_000,
  'bad-then-stall': 6_000,
  'false-have': 5_000,
  garbage: 5_000,
  channels: 5_000,
  silent: 30_000,
};
const reasons: Record<Behavior, string> = {
  flip: 'bad-piece',
  'bad-then-stall': 'bad-piece',
  'false-have': 'false-have',
  garbage: 'protocol-error',
  channels: 'protocol-error',
  silent: 'stalled',
};

test('hostile viewers: asked, out in time, not linked again, no wrong byte, no honest viewer blamed, no stall', async () => {
  const options = { level: 2, buffer: 16 };
  const honest = [await Viewer.open(browser, stack.page(options), { name: 'first' })];
  await honest[0]!.until('5 s of film', (seen) => seen.currentTime > 5);
  honest.push(await Viewer.open(browser, stack.page(options), { name: 'second' }));
  await honest[1]!.until('3 s of film', (seen) => seen.currentTime > 3);

  const hostile: { it: Hostile; linked: string[] }[] = [];
  for (const behave of behaviors) {
    const it = new Hostile(stack, behave, seconds + 10);
    const deadline = Date.now() + seconds * 1000;
    do {
      while (!it.settled() && Date.now() < deadline) await pause(100);
      // It offers itself again, and another viewer may have begun to ask.
      await pause(2_500);
    } while (!it.settled() && Date.now() < deadline);
    const linked: string[] = [];
    for (const viewer of honest) if (await linkedTo(viewer, it.peer)) linked.push(await ownPeer(viewer));
    hostile.push({ it, linked });
    await it.stop();
  }
  const names = new Map(hostile.map(({ it }) => [it.peer, it.behave]));
  const viewers = [];
  for (const v of honest) {
    const [seen, player, told] = [await v.seen(), await v.player(), await v.told()];
    const wrong: string[] = [];
    for (const { url, digest } of player.loaded) {
      const path = new URL(url).pathname;
      const body = await stack.origin.body(path);
      if (digest !== createHash('sha256').update(body).digest('hex')) wrong.push(path);
    }
    const blamed = told.unlinks
      .filter((u) => u.banned || !['closed', 'failed', 'shutdown', 'idle'].includes(u.reason))
      .map((u) => ({
        who: names.get(u.peer) ?? 'honest',
        reason: u.reason,
        banned: u.banned,
        // One that broke before it was open was never a link.
        linked_ms: u.at - (told.links.findLast((l) => l.peer === u.peer && l.at <= u.at)?.at ?? u.at),
      }));
    viewers.push({
      name: v.name,
      peer: await ownPeer(v),
      segments: player.loaded.length,
      wrong,
      stalls: seen.stalls,
      fatal: player.errors.filter((e) => e.fatal),
      errors: v.consoleErrors(),
      played: seen.currentTime,
      blamed,
    });
  }
  const attacks = hostile.map(({ it, linked }) => ({
    behave: it.behave,
    opened: it.opened().length,
    askers: it.askers().length,
    outs: it.outs().map(({ peer: _, ...out }) => out),
    refused: it.of('fail').map(({ detail }) => detail.value),
    linked: linked.length,
  }));
  // Both are behind one address, so what they report is one vote: no viewer is banned for all by one network.
  const tracked = await metrics(stack.admin);
  const reports = (outcome: string) => sum(tracked, 'leeway_tracker_reports_total', `outcome="${outcome}"`);
  figures('hostile', { viewers, attacks, reports: reports('counted'), repeated: reports('repeated') });

  expect(reports('counted'), 'hostile viewers that the tracker heard of').toBeGreaterThan(0);
  expect(sum(tracked, 'leeway_tracker_bans_total'), 'banned by one network').toBe(0);
  expect(reports('seed'), 'reports of seeds').toBe(0);
  for (const v of viewers) {
    expect(v.segments, `${v.name}: segments compared`).toBeGreaterThan(10);
    expect(v.wrong, v.name).toEqual([]);
    expect(v.stalls, v.name).toEqual([]);
    expect(v.fatal, v.name).toEqual([]);
    expect(v.errors, v.name).toEqual([]);
    for (const b of v.blamed) {
      expect(b.who, v.name).not.toBe('honest');
      // Silence is no proof; everything else is.
      expect([b.reason, b.banned], b.who).toEqual([reasons[b.who as Behavior], b.who !== 'silent']);
    }
  }
  for (const { it, linked } of hostile) {
    const { behave } = it;
    expect(it.settled(), `${behave}: ${JSON.stringify(it.notes)}`).toBe(true);
    // No viewer that ended the link took it back, though it offered itself again. A viewer that never asked may have one.
    const opened = it.opened();
    expect(new Set(opened).size, `${behave}: links`).toBe(opened.length);
    expect(it.of('fail').length, `${behave}: refused`).toBeGreaterThan(0);
    const outs = it.outs();
    for (const peer of linked)
      expect(
        outs.map((o) => o.peer),
        behave,
      ).not.toContain(peer);
    for (const out of outs) {
      // A flooded viewer ends it at once, but the word of that may be lost in the flood, and the other side then learns of it
      // when its checks go unanswered.
      const ended = viewers.find((v) => v.peer === out.peer)?.blamed.find((b) => b.who === behave);
      const took = unasked.includes(behave) ? Math.min(out.open_ms, ended?.linked_ms ?? out.open_ms) : out.asked_ms;
      expect(took, `${behave}: ${JSON.stringify(out)}`).toBeLessThanOrEqual(bounds[behave]);
    }
    if (behave === 'channels' || behave === 'garbage') continue;
    // Each was asked, and blamed by the viewer that asked.
    const blames = viewers.flatMap((v) => v.blamed).filter((b) => b.who === behave);
    expect(blames.length, behave).toBe(it.askers().length);
  }
});

async function linkedTo(viewer: Viewer, peer: string): Promise<boolean> {
  const stats = await viewer.stats();
  // biome-ignore lint/suspicious/noExplicitAny: the library's figures
  return stats.titles.some((title: any) => title.engine?.peers.some((p: any) => p.peer === peer));
}

async function ownPeer(viewer: Viewer): Promise<string> {
  return (await viewer.stats()).self;
}
