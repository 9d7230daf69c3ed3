import { describe, expect, test } from 'vitest';
import { manifest, request, setUp } from './testing/client.ts';
import { peerA, peerB, swarm } from './testing/socket.ts';

/** A page in its swarm whose player has asked for its first segment and has no picture. */
async function entered() {
  const page = setUp();
  page.leeway.start();
  const playback = page.leeway.open(manifest);
  playback.load(request(0)).result.catch(() => {});
  await page.clock.advance(0);
  await page.welcomed();
  await page.joined();
  return { ...page, playback };
}

describe('the engine, in a file of its own', () => {
  test('comes with the first picture, once for all titles', async () => {
    const { leeway, clock, loads, engines, sent, welcomed, joined } = setUp();
    leeway.start();
    const first = leeway.open(manifest);
    await clock.advance(500);
    first.load(request(0)).result.catch(() => {});
    await clock.advance(0);
    await welcomed();
    // The peers that are there may be told already.
    expect([loads.engine, sent('join').length]).toEqual([0, 1]);
    first.observe({ startup_ms: 700 });
    expect(loads.engine).toBe(0);
    await joined();
    await clock.advance(49);
    expect([loads.engine, engines.length]).toEqual([0, 0]);
    await clock.advance(1);
    expect([loads.engine, engines.length]).toEqual([1, 1]);
    leeway.open('https://video.example.com/other/master.m3u8');
    await clock.advance(2_000);
    expect(sent('join').length).toBe(2);
    leeway.stop();
  });

  test('comes with a session that opens after the picture, and not before', async () => {
    const { leeway, clock, loads, sent, welcomed } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    playback.load(request(0)).result.catch(() => {});
    await clock.advance(0);
    playback.observe({ startup_ms: 10 });
    await clock.advance(6_000);
    expect(loads.engine).toBe(0);
    await welcomed();
    await clock.advance(0);
    // The join goes out as soon as its offers are made.
    expect([loads.engine, sent('join').length]).toEqual([1, 1]);
    expect(sent('join')).toMatchObject([{ offers: [{ early: true }, { early: true }] }]);
    leeway.stop();
  });

  test('takes nothing of the first segment’s line for a session that may never open', async () => {
    const { leeway, clock, loads, welcomed } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    playback.load(request(0)).result.catch(() => {});
    await clock.advance(6_000);
    expect(loads.engine).toBe(0);
    await welcomed();
    expect(loads.engine).toBe(1);
    leeway.stop();
  });

  test('and links wait for the picture; the peers that the tracker names meanwhile are offered to then', async () => {
    const { leeway, clock, tracker, sent, playback, connections, engines } = await entered();
    tracker.last.say({ type: 'introduce', swarm, peers: [{ peer: peerA, role: 'viewer' }] });
    const offer = { kind: 'offer', sdp: 'v=0', plan: { v: 1, data: 2, message: 16_384 } };
    tracker.last.say({ type: 'signal', swarm, from: peerB, role: 'viewer', link: peerB, ...offer });
    await clock.advance(900);
    expect([connections.length, engines.length]).toEqual([0, 0]);
    playback.observe({ startup_ms: 900 });
    await clock.advance(49);
    expect(connections).toHaveLength(0);
    await clock.advance(60);
    expect([connections.length, engines.length]).toEqual([2, 1]);
    expect(sent('signal').map(({ kind }) => kind)).toContain('offer');
    leeway.stop();
  });

  /** A page that plays segments of 500 kB and 4 s over a line of so many bytes a ms. */
  const over = async (rate: number, live?: boolean) => {
    const page = setUp();
    const { leeway, clock, welcomed, joined } = page;
    leeway.start();
    const playback = leeway.open(manifest);
    await clock.advance(0);
    await welcomed();
    await joined();
    /** Has the next segment come, with so much in hand as it is asked for. */
    const get = async (hand: number, bytes = 500_000) => {
      const transferMs = bytes / rate;
      const answer = { data: new ArrayBuffer(bytes), status: 200, url: 'x', transferMs };
      const origin = () => new Promise<typeof answer>((resolve) => clock.setTimer(() => resolve(answer), transferMs));
      const { result } = playback.load({ ...request(hand, origin), live });
      await clock.advance(transferMs);
      await result;
    };
    await get(0, 100_000);
    return { ...page, playback, get };
  };

  test('comes a second after there is something in hand, where no picture follows', async () => {
    const { clock, engines, leeway, get } = await over(5_000);
    await get(4_000);
    await clock.advance(849);
    expect(engines).toHaveLength(0);
    await clock.advance(1);
    expect(engines).toHaveLength(1);
    leeway.stop();
  });

  test('and links come once 10 s are in hand, over a line that fills the buffer slowly', async () => {
    const { clock, connections, engines, leeway, loads, playback, get, tracker } = await over(200);
    tracker.last.say({ type: 'introduce', swarm, peers: [{ peer: peerA, role: 'viewer' }] });
    await get(1_000);
    playback.observe({ startup_ms: 3_000 });
    for (const hand of [2_500, 4_000, 5_500, 7_000, 8_500, 9_900]) await get(hand);
    expect([loads.engine, engines.length, connections.length]).toEqual([0, 0, 0]);
    const last = get(10_100);
    await clock.advance(50);
    expect([loads.engine, engines.length, connections.length]).toEqual([1, 1, 1]);
    await last;
    // Others may have what it fetched until then.
    expect(engines[0]!.adopted).toHaveLength(9);
    leeway.stop();
  });

  test('or with the picture, at a live stream, which has nothing to fill a buffer with', async () => {
    const { clock, engines, leeway, playback, get } = await over(200, true);
    await get(4_000);
    playback.observe({ startup_ms: 500 });
    await clock.advance(50);
    expect(engines).toHaveLength(1);
    leeway.stop();
  });

  test('or 30 s after the manifest', async () => {
    const { clock, engines, leeway, playback, get } = await over(200);
    playback.observe({ startup_ms: 500 });
    for (let n = 0; n < 11; n++) await get(6_000);
    await clock.advance(1_949);
    expect(engines).toHaveLength(0);
    await clock.advance(1);
    expect(engines).toHaveLength(1);
    leeway.stop();
  });

  test('or with the picture, over a line that is too slow for what is played', async () => {
    const { clock, engines, leeway, playback, get } = await over(100);
    const second = get(4_000);
    playback.observe({ startup_ms: 1_000 });
    await clock.advance(50);
    expect(engines).toHaveLength(1);
    await second;
    leeway.stop();
  });

  test('or a second after the player asks again for what the origin failed to send, and not when the player takes its request back', async () => {
    const { clock, engines, leeway, welcomed, joined } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    await clock.advance(0);
    await welcomed();
    await joined();
    const taken = playback.load(
      request(0, (signal) => new Promise((_, no) => signal.addEventListener('abort', () => no(new Error('aborted'))))),
    );
    taken.abort();
    await expect(taken.result).rejects.toThrow('aborted');
    await clock.advance(1_000);
    expect(engines).toHaveLength(0);
    const down = () => playback.load(request(0, () => Promise.reject(new Error('503')))).result;
    await expect(down()).rejects.toThrow('503');
    await expect(down()).rejects.toThrow('503');
    await clock.advance(950);
    expect(engines).toHaveLength(1);
    leeway.stop();
  });

  test('waits for the picture also where the session was lost before', async () => {
    const { clock, connections, engines, leeway, sent, tracker, playback, welcomed, joined } = await entered();
    tracker.last.say({ type: 'reconnect', after_ms: 0 });
    await clock.advance(2_000);
    await welcomed({ resumed: true });
    await joined();
    tracker.last.say({ type: 'introduce', swarm, peers: [{ peer: peerA, role: 'viewer' }] });
    await clock.advance(1_000);
    expect([sent('join').length, engines.length, connections.length]).toEqual([2, 0, 0]);
    playback.observe({ startup_ms: 3_000 });
    await clock.advance(50);
    expect([sent('join').length, engines.length, connections.length]).toEqual([2, 1, 1]);
    leeway.stop();
  });

  test('leaves the origin to serve where it does not come, and is asked for again', async () => {
    const { leeway, clock, loads, engines, sent, codes, enter, joined } = setUp();
    loads.failing = true;
    leeway.start();
    const playback = leeway.open(manifest);
    await enter();
    expect(codes()).toEqual(['engine-missing']);
    expect(sent('join')).toEqual([]);
    expect(playback.active).toBe(false);
    await expect(playback.load(request()).result).resolves.toMatchObject({ source: 'origin', reason: 'policy' });
    await clock.advance(25_000);
    expect(loads.engine).toBe(2);
    loads.failing = false;
    await clock.advance(10_000);
    await joined();
    expect([loads.engine, engines.length, codes().length]).toEqual([3, 1, 1]);
    expect(engines[0]!.off).toBe(null);
    expect(leeway.stats().titles[0]!.off).toBe(null);
    leeway.stop();
    await clock.advance(100_000);
    expect(loads.engine).toBe(3);
  });

  test('has the tracker told nothing more of a title that was joined, where it does not come', async () => {
    const { clock, leeway, loads, playback, sent } = await entered();
    loads.failing = true;
    playback.observe({ startup_ms: 1_000 });
    await clock.advance(60_000);
    expect(sent('leave')).toHaveLength(1);
    expect(sent('update')).toEqual([]);
    leeway.stop();
  });

  test('is given what came before it, and what comes without it is not kept where it is not coming', async () => {
    const { leeway, engines, enter, joined, clock } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    for (let i = 0; i < 10; i++) await playback.load(request(0)).result;
    await enter();
    await joined();
    expect(engines[0]!.adopted).toEqual(Array.from({ length: 8 }, () => ['https://video.example.com/film/1.ts', 100]));
    leeway.stop();

    const strict = setUp();
    strict.leeway.start();
    const secret = {
      ...request(0),
      origin: async () => ({ data: new ArrayBuffer(9), status: 200, url: 'x', unshared: true }),
    };
    await strict.leeway.open(manifest).load(secret).result;
    await strict.enter();
    await strict.joined();
    expect(strict.engines[0]!.adopted).toEqual([]);
    strict.leeway.stop();

    const off = setUp();
    off.leeway.start();
    const other = off.leeway.open(manifest);
    await other.load(request(0)).result;
    await off.enter({ policy: { role: 'off' } });
    await off.joined();
    expect(off.engines.flatMap(({ adopted }) => adopted)).toEqual([]);
    await clock.advance(0);
  });

  test('is given what came before it when the session was lost meanwhile, too', async () => {
    const { leeway, engines, welcomed, joined, clock, tracker } = setUp();
    leeway.start();
    const playback = leeway.open(manifest);
    await playback.load(request(0)).result;
    await clock.advance(0);
    tracker.last.handlers.close();
    await clock.advance(1_000);
    await welcomed();
    await joined();
    await clock.advance(5_000);
    expect(engines[0]!.adopted).toHaveLength(1);
    leeway.stop();
  });

  test('is not waited for by a page that has stopped', async () => {
    const { leeway, clock, loads, sent, enter } = setUp();
    loads.failing = true;
    leeway.start();
    leeway.open(manifest);
    await enter();
    leeway.stop();
    await clock.advance(60_000);
    expect([loads.engine, sent('join').length]).toEqual([1, 0]);
  });
});
