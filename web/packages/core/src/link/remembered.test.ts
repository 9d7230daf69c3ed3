import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { PeerLink } from '../ports.ts';
import { hexToId } from '../session/base64.ts';
import { settle } from '../testing/clock.ts';
import { description, type FakeConnection } from '../testing/connection.ts';
import { from, hexA, hexB, plan, setUp } from '../testing/linking.ts';
import { peerA, peerB } from '../testing/socket.ts';

describe('a peer that is not linked again', () => {
  const offer = (peer: string, link: string) => from(peer, link, { kind: 'offer', sdp: description, plan });
  const answered = async (s: ReturnType<typeof setUp>, link: string) => {
    s.links.signal(offer(peerA, link));
    await settle();
    for (const label of ['lw.control', 'lw.data.0', 'lw.data.1']) s.connections.at(-1)!.incoming(label);
    await settle();
    return s.opened.mock.calls.at(-1)![0] as PeerLink;
  };
  const last = (s: ReturnType<typeof setUp>) => s.signals().at(-1);

  test('one that fell silent, for a minute', async () => {
    const s = setUp();
    const link = await answered(s, 'l1');
    link.close('stalled', 8);
    await s.clock.advance(59_999);
    s.links.signal(offer(peerA, 'l2'));
    s.links.introduce([{ peer: peerA, role: 'viewer' }]);
    await settle();
    expect(last(s)).toMatchObject({ link: 'l2', kind: 'fail', reason: 'busy' });
    expect(s.connections).toHaveLength(1);
    await s.clock.advance(1);
    s.links.signal(offer(peerA, 'l3'));
    await settle();
    expect(last(s)).toMatchObject({ link: 'l3', kind: 'answer' });
  });

  test('one that ended its link is, after two seconds: a page may load again', async () => {
    const s = setUp();
    const link = await answered(s, 'l1');
    s.links.signal(offer(peerA, 'l2'));
    await settle();
    expect(last(s)).toMatchObject({ link: 'l2', kind: 'fail', reason: 'busy' });
    link.close('closed');
    await s.clock.advance(2_000);
    s.links.signal(offer(peerA, 'l3'));
    await settle();
    expect(last(s)).toMatchObject({ link: 'l3', kind: 'answer' });
  });

  test('is forgotten once that is over, and remembered while it is not', async () => {
    const kept = new Set<Map<unknown, unknown>>();
    const { set } = Map.prototype;
    const spy = vi.spyOn(Map.prototype, 'set').mockImplementation(function (this: Map<unknown, unknown>, key, value) {
      // Of all maps this one has peers for keys.
      if (key === hexA) kept.add(this);
      return set.call(this, key, value);
    });
    onTestFinished(() => spy.mockRestore());
    const s = setUp();
    s.links.avoid(hexB);
    (await answered(s, 'l1')).close('stalled', 8);
    expect(kept.size).toBe(1);
    for (let n = 10; n < 50; n++) {
      s.links.signal(offer(hexToId(n.toString(16).padStart(32, '0')), `of ${n}`));
      await s.clock.advance(1_400);
    }
    const [avoided] = [...kept];
    // The banned one, the silent one, and the one that has offered within two seconds.
    expect(avoided!.size).toBe(4);
    for (const [peer, reason] of [
      [peerB, 'refused'],
      [peerA, 'busy'],
    ] as const) {
      s.links.signal(offer(peer, `again ${peer}`));
      await settle();
      expect(last(s)).toMatchObject({ to: peer, kind: 'fail', reason });
    }
    s.links.stop();
  });

  test.each([
    ['opens channels without end', (c: FakeConnection) => Array.from({ length: 9 }, (_, n) => c.incoming(`x${n}`))],
    [
      'talks ahead of readiness without end',
      (c: FakeConnection) => {
        const control = c.incoming('lw.control');
        for (let n = 0; n < 257; n++) control.say(0x40);
      },
    ],
  ])('one that %s while the link opens, ever', async (_, flood) => {
    const s = setUp();
    s.links.signal(offer(peerA, 'l1'));
    await settle();
    flood(s.connections[0]!);
    await settle();
    expect(s.connections[0]!.closed).toBe(true);
    expect(s.failed).toHaveBeenCalledWith('refused');
    await s.clock.advance(3_600_000);
    s.links.signal(offer(peerA, 'l2'));
    await settle();
    expect(last(s)).toMatchObject({ link: 'l2', kind: 'fail', reason: 'refused' });
  });
});
