/** A page that is put away for going back to, or frozen: it says so, and comes back. */

import { expect, test } from 'vitest';
import { manifest, request, setUp } from './testing/client.ts';
import { settle } from './testing/clock.ts';
import { description } from './testing/connection.ts';
import { peerA, peerB, swarm } from './testing/socket.ts';

/** A page with a link that is open and one that is opening. */
async function linked() {
  const page = setUp();
  const { leeway, tracker, connections, engines, enter, joined, sent } = page;
  leeway.start();
  const playback = leeway.open(manifest);
  await enter();
  await joined();
  tracker.last.say({ type: 'introduce', swarm, peers: [peerA, peerB].map((peer) => ({ peer, role: 'viewer' })) });
  await settle();
  const { link } = sent('signal').find(({ to, kind }) => to === peerA && kind === 'offer')!;
  const plan = { v: 1, data: 2, message: 16_384 };
  tracker.last.say({
    type: 'signal',
    swarm,
    from: peerA,
    role: 'viewer',
    link,
    kind: 'answer',
    sdp: description,
    plan,
  });
  await settle();
  const made = connections.slice(-2);
  made[0]!.openAll();
  await settle();
  expect(engines[0]!.links).toHaveLength(1);
  return { ...page, playback, made };
}

test('goes to sleep with nothing open, and comes back to the same session and swarm', async () => {
  const { leeway, clock, tracker, connections, engines, listeners, made, sent, welcomed, joined, codes } =
    await linked();
  const ended: string[] = [];
  engines[0]!.links[0]!.onClose = (reason) => ended.push(reason);
  engines[0]!.delta.bytes.peer = 500;
  const before = connections.length;
  listeners.sleep(true);
  // All of it at once: no timer runs any more.
  expect(connections.filter(({ closed }) => !closed)).toEqual([]);
  expect([made.length, ended, tracker.last.closed]).toEqual([2, ['idle'], 1000]);
  expect(sent('stats').at(-1)).toMatchObject({ bytes: { peer: 500 } });
  expect(leeway.state).toBe('waiting');
  await clock.advance(60_000);
  expect([tracker.sockets.length, connections.length]).toEqual([1, before]);

  listeners.sleep(false);
  await clock.advance(0);
  expect(tracker.sockets).toHaveLength(2);
  await welcomed({ resumed: true });
  expect(tracker.last.sent[0]).toMatchObject({ type: 'hello', ticket: 'ticket-1' });
  await clock.advance(0);
  expect(sent('join')).toHaveLength(2);
  await joined();
  expect([leeway.state, engines.length, engines[0]!.linking]).toEqual(['ready', 1, true]);
  tracker.last.say({ type: 'introduce', swarm, peers: [{ peer: peerA, role: 'viewer' }] });
  await settle();
  expect(connections.at(-1)!.closed).toBe(false);
  expect(codes()).toEqual([]);
  leeway.stop();
  expect(clock.pending).toBe(0);
});

test('a segment that is asked for as the page goes to sleep comes from the origin', async () => {
  const { leeway, playback, listeners, engines, tracker } = await linked();
  listeners.sleep(true);
  await expect(playback.load(request()).result).resolves.toMatchObject({ source: 'origin' });
  expect(engines[0]!.stopped).toBe(false);
  listeners.sleep(false);
  expect(tracker.sockets.length).toBeLessThanOrEqual(2);
  leeway.stop();
});

test('wakes hidden and paused, and then has no links until it is looked at', async () => {
  let hidden = true;
  const page = setUp({}, { hidden: () => hidden });
  const { leeway, clock, tracker, listeners, connections, welcomed, enter, joined } = page;
  leeway.start();
  const playback = leeway.open(manifest);
  await enter();
  await joined();
  playback.setPaused(true);
  listeners.sleep(true);
  const before = connections.length;
  listeners.sleep(false);
  await clock.advance(0);
  await welcomed({ resumed: true });
  await clock.advance(0);
  await joined();
  const introduce = () => tracker.last.say({ type: 'introduce', swarm, peers: [{ peer: peerA, role: 'viewer' }] });
  introduce();
  await settle();
  expect(connections).toHaveLength(before);
  hidden = false;
  listeners.visibility();
  introduce();
  await settle();
  expect(connections).toHaveLength(before + 1);
  leeway.stop();
});

test('finds itself adrift, and comes back to the same session and swarm with its links', async () => {
  const { leeway, clock, tracker, contexts, engines, sent, welcomed, joined, codes } = await linked();
  contexts[0]!.hurry();
  expect([leeway.state, tracker.last.closed]).toEqual(['waiting', 1000]);
  await clock.advance(500);
  expect(tracker.sockets).toHaveLength(2);
  await welcomed({ resumed: true });
  expect(tracker.last.sent[0]).toMatchObject({ type: 'hello', ticket: 'ticket-1' });
  await clock.advance(0);
  expect(sent('join')).toHaveLength(2);
  await joined();
  let named = 0;
  engines[0]!.links[0]!.onNamed = () => named++;
  tracker.last.say({ type: 'introduce', swarm, peers: [{ peer: peerA, role: 'viewer' }] });
  expect([named, engines.length, codes()]).toEqual([1, 1, []]);
  leeway.stop();
  // For a last word.
  await clock.advance(150);
  expect(clock.pending).toBe(0);
});

test.each([
  ['connect-src', 'wss://tracker.example.com/', 'tracker-blocked', 'off'],
  ['worker-src', 'blob', 'worker-blocked', 'ready'],
  ['worker-src', 'https://other.example.com/worker.js', undefined, 'ready'],
  ['img-src', 'https://other.example.com/', undefined, 'ready'],
])('a policy without %s for %s: %s', async (effectiveDirective, blockedURI, code, state) => {
  const { leeway, listeners, codes, enter, joined } = setUp();
  leeway.start();
  leeway.open(manifest);
  await enter();
  await joined();
  listeners.forbidden({ blockedURI, effectiveDirective });
  expect(codes()).toEqual(code ? [code] : []);
  expect(leeway.state).toBe(state);
  expect(leeway.stats().notice?.code).toBe(code);
  leeway.stop();
});
