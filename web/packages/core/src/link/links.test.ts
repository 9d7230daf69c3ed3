import { describe, expect, test } from 'vitest';
import type { PeerLink } from '../ports.ts';
import { hexToId } from '../session/base64.ts';
import { settle } from '../testing/clock.ts';
import { description, type FakeConnection } from '../testing/connection.ts';
import { from, hexA, hexB, plan, policy, setUp } from '../testing/linking.ts';
import { peerA, peerB } from '../testing/socket.ts';
import { establishMs } from './link.ts';

describe('links', () => {
  test('offers to the peers that the tracker names, once', async () => {
    const { links, signals, connections } = setUp();
    links.introduce([
      { peer: peerA, role: 'viewer' },
      { peer: peerA, role: 'viewer' },
    ]);
    await settle();
    expect(signals()).toMatchObject([{ to: peerA, kind: 'offer', plan }]);
    expect(connections).toHaveLength(1);
    expect(links.want).toBe(2);
  });

  test('opens, and counts what is open', async () => {
    const { links, signals, connections, opened } = setUp();
    links.introduce([{ peer: peerA, role: 'seed' }]);
    await settle();
    const { link } = signals()[0];
    // Another peer that guessed the link's ID is not heard.
    links.signal(from(peerB, link, { kind: 'answer', sdp: description, plan }));
    await settle();
    expect(connections[0]!.remoteDescription).toBeNull();
    links.signal(from(peerA, link, { kind: 'answer', sdp: description, plan }));
    await settle();
    connections[0]!.openAll();
    await settle();
    expect(opened).toHaveBeenCalledWith(expect.objectContaining({ peer: hexA, role: 'seed' }));
    expect([links.open, links.opening]).toEqual([1, 0]);
  });

  test('says whether a source may come: a seed, or a viewer where those serve and until a link is open', async () => {
    const { links, signals, connections } = setUp();
    const coming = () => [links.coming(false), links.coming(true)];
    expect(coming()).toEqual([false, false]);
    links.introduce([{ peer: peerA, role: 'viewer' }]);
    await settle();
    expect(coming()).toEqual([false, true]);
    links.signal(from(peerA, signals()[0].link, { kind: 'answer', sdp: description, plan }));
    await settle();
    connections[0]!.openAll();
    await settle();
    links.introduce([{ peer: peerB, role: 'viewer' }]);
    await settle();
    expect([links.open, links.opening, ...coming()]).toEqual([1, 1, false, false]);
    links.introduce([{ peer: hexToId('3'.repeat(32)), role: 'seed' }]);
    await settle();
    expect(coming()).toEqual([true, true]);
  });

  test('tells an open link that its peer was named, which is offered another when it asks for it', async () => {
    const { links, signals, connections, opened } = setUp();
    const name = () => links.introduce([{ peer: peerA, role: 'viewer' }]);
    name();
    await settle();
    const { link } = signals()[0];
    links.signal(from(peerA, link, { kind: 'answer', sdp: description, plan }));
    await settle();
    connections[0]!.openAll();
    await settle();
    const open = opened.mock.calls[0]![0] as PeerLink;
    let again: (() => void) | undefined;
    open.onNamed = (f) => {
      again = f;
    };
    name();
    again!();
    await settle();
    // It is there still.
    expect(connections).toHaveLength(1);
    open.onNamed = (f) => {
      open.close('timeout');
      f();
    };
    name();
    await settle();
    expect(signals().filter(({ kind }) => kind === 'offer')).toMatchObject([{ to: peerA }, { to: peerA }]);
    expect([links.open, links.opening]).toEqual([0, 1]);
  });

  test('has offers ready for whomever the tracker picks', async () => {
    const { links, signals, connections, opened, failed } = setUp();
    links.prepare(2);
    await settle();
    connections[0]!.candidate('candidate:1 1 udp 1 203.0.113.7 5000 typ host');
    const [first, second] = links.ready(['01'.repeat(16)]);
    expect(first).toMatchObject({ sdp: 'v=0 offer', plan, early: true, wanted: ['AQEBAQEBAQEBAQEBAQEBAQ'] });
    expect([links.want, links.opening, signals()]).toEqual([1, 0, []]);
    // What the description did not have yet waits for a peer.
    connections[0]!.candidate('candidate:2 1 udp 1 203.0.113.8 5000 typ host');
    links.offered([
      { link: first!.link, peer: peerA, role: 'viewer' },
      { link: second!.link, peer: peerA, role: 'viewer' },
    ]);
    expect(signals()).toMatchObject([
      { to: peerA, kind: 'candidate', candidate: expect.stringContaining('candidate:2') },
    ]);
    expect([links.opening, links.coming(true)]).toEqual([1, true]);
    // The same peer needs no second link, and no other peer may speak about the first.
    expect([connections[0]!.closed, connections[1]!.closed]).toEqual([false, true]);
    links.signal(from(peerA, first!.link, { kind: 'answer', sdp: description, plan }));
    links.signal(from(peerB, first!.link, { kind: 'fail', reason: 'gone' }));
    await settle();
    connections[0]!.openAll();
    await settle();
    expect(opened).toHaveBeenCalledWith(expect.objectContaining({ peer: hexA, wanted: ['01'.repeat(16)] }));
    expect(failed).not.toHaveBeenCalled();
  });

  test('forgets ready offers that found no peer, and blames none', async () => {
    const { clock, links, signals, connections, failed } = setUp();
    links.prepare(2);
    await settle();
    const [first] = links.ready([]);
    links.offered([]);
    expect(links.coming(true)).toBe(false);
    // It was given to no peer, so none has anything to say about it.
    links.signal(from(peerA, first!.link, { kind: 'answer', sdp: description, plan }));
    expect([connections[0]!.closed, links.want]).toEqual([false, 1]);
    await clock.advance(establishMs + 1_000);
    expect([connections[0]!.closed && connections[1]!.closed, links.want, links.ready([])]).toEqual([true, 3, []]);
    expect(signals()).toEqual([]);
    expect(failed).not.toHaveBeenCalled();
  });

  test('answers offers up to its bound, then is busy', async () => {
    const { links, signals } = setUp({ maxLinks: 1 });
    links.signal(from(peerA, 'l1', { kind: 'offer', sdp: description, plan }));
    links.signal(from(peerB, 'l2', { kind: 'offer', sdp: description, plan }));
    await settle();
    expect(signals()).toMatchObject([
      { to: peerB, link: 'l2', kind: 'fail', reason: 'busy' },
      { to: peerA, link: 'l1', kind: 'answer' },
    ]);
  });

  test('does not answer an offer again, nor tell a peer that offers on and on what it has been told', async () => {
    const { clock, links, signals, connections } = setUp({ maxLinks: 1 });
    for (let i = 0; i < 50; i++) {
      links.signal(from(peerA, 'l1', { kind: 'offer', sdp: description, plan }));
      links.signal(from(peerB, 'l2', { kind: 'offer', sdp: description, plan }));
      links.signal(from(peerB, `l${i}`, { kind: 'offer', sdp: description, plan }));
      await clock.advance(10);
    }
    await settle();
    expect(connections).toHaveLength(1);
    expect(signals().map(({ to, kind }) => [to, kind])).toEqual([
      [peerB, 'fail'],
      [peerA, 'answer'],
    ]);
    await clock.advance(2_000);
    links.signal(from(peerB, 'l2', { kind: 'offer', sdp: description, plan }));
    expect(signals()).toHaveLength(3);
  });

  test('hears fifty newcomers at once, and not a flood', async () => {
    const { clock, links, signals } = setUp({ maxLinks: 0 });
    const offer = (i: number) =>
      links.signal(from(hexToId(i.toString(16).padStart(32, '0')), `l${i}`, { kind: 'offer', sdp: description, plan }));
    for (let i = 0; i < 50; i++) offer(i);
    expect(signals()).toHaveLength(50);
    for (let i = 0; i < 5_000; i++) {
      offer(100 + i);
      await clock.advance(1);
    }
    expect(signals().length).toBeLessThanOrEqual(64 + 5 * 16 + 1);
  });

  test('says so when the browser gives no connection', async () => {
    const { links, signals, connections } = setUp({}, undefined, () => {
      throw new Error('Cannot create so many PeerConnections');
    });
    links.signal(from(peerA, 'l1', { kind: 'offer', sdp: description, plan }));
    await settle();
    expect(signals()).toMatchObject([{ link: 'l1', kind: 'fail', reason: 'busy' }]);
    expect([connections.length, links.opening]).toEqual([0, 0]);
  });

  test('of two offers at once the lower peer ID stands', async () => {
    for (const [own, stands] of [
      ['00000000000000000000000000000000', 'ours'],
      ['00000000000000000000000000000009', 'theirs'],
    ] as const) {
      const { links, signals, connections } = setUp({}, own);
      links.introduce([{ peer: peerA, role: 'viewer' }]);
      await settle();
      links.signal(from(peerA, 'theirs', { kind: 'offer', sdp: description, plan }));
      await settle();
      const last = signals().at(-1);
      expect(last).toMatchObject(stands === 'ours' ? { kind: 'fail', reason: 'busy' } : { kind: 'answer' });
      expect(connections[0]!.closed).toBe(stands === 'theirs');
      expect(links.opening).toBe(1);
    }
  });

  test('a banned peer is neither offered to nor answered', async () => {
    const { links, signals, connections } = setUp();
    links.avoid(hexB);
    links.introduce([{ peer: peerB, role: 'viewer' }]);
    links.signal(from(peerB, 'l', { kind: 'offer', sdp: description, plan }));
    await settle();
    expect(connections).toHaveLength(0);
    expect(signals()).toMatchObject([{ kind: 'fail', reason: 'refused' }]);
  });

  test('relay-only shows no address to viewers, and the policy can forbid relays', () => {
    const iceServers = [{ urls: ['turn:turn.example.com', 'stun:turn.example.com'], username: 'u', credential: 'c' }];
    const relayed = setUp({ iceServers, policy: { ...policy, role: 'relay-only' } });
    relayed.links.prepare(2); // for whomever the tracker picks: that may be a viewer or a seed
    expect(relayed.connections).toHaveLength(0);
    relayed.links.introduce([
      { peer: peerA, role: 'viewer' },
      { peer: peerB, role: 'seed' },
    ]);
    expect(relayed.connections.map(({ configuration }) => configuration.iceTransportPolicy)).toEqual(['relay', 'all']);
    // Seeds have no relay, and no viewer that has one meets them by it.
    const served = (connection: FakeConnection) => connection.configuration.iceServers!.flatMap(({ urls }) => urls);
    expect(relayed.connections.map((c) => served(c).some((url) => url.startsWith('turn')))).toEqual([true, false]);
    const direct = setUp({ iceServers, policy: { ...policy, relay: 'never' } });
    direct.links.introduce([{ peer: peerA, role: 'viewer' }]);
    expect(direct.connections[0]!.configuration.iceServers).toMatchObject([{ urls: ['stun:turn.example.com'] }]);
  });

  test('two attempts blocked alike are a reason; an open link lifts it', async () => {
    const { clock, links, signals, connections, failed } = setUp({ policy: { ...policy, local: 'if-granted' } });
    const candidate = 'candidate:1 1 udp 1 a.local 5 typ host';
    for (const peer of [peerA, peerB]) {
      links.introduce([{ peer, role: 'viewer' }]);
      await settle();
      const { link } = signals().findLast(({ kind }) => kind === 'offer')!;
      links.signal(from(peer, link, { kind: 'answer', sdp: description, plan }));
      links.signal(from(peer, link, { kind: 'candidate', candidate }));
      await clock.advance(establishMs);
    }
    expect(failed.mock.calls).toEqual([['lna-denied'], ['lna-denied']]);
    expect(links.blocked).toBe('lna-denied');
    links.signal(from('AAAAAAAAAAAAAAAAAAAAAw', 'l', { kind: 'offer', sdp: description, plan }));
    await settle();
    for (const label of ['lw.control', 'lw.data.0', 'lw.data.1']) connections.at(-1)!.incoming(label);
    await settle();
    expect(links.blocked).toBeNull();
  });

  test('a stop closes everything and takes nothing new', async () => {
    const { clock, links, connections } = setUp();
    links.introduce([{ peer: peerA, role: 'viewer' }]);
    await settle();
    links.stop();
    links.introduce([{ peer: peerB, role: 'viewer' }]);
    links.signal(from(peerB, 'l', { kind: 'offer', sdp: description, plan }));
    await clock.advance(60_000);
    expect(connections).toHaveLength(1);
    expect(connections[0]!.closed).toBe(true);
    expect(clock.pending).toBe(0);
  });
});
