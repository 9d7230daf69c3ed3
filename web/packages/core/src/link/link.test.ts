import { describe, expect, test, vi } from 'vitest';
import { settle } from '../testing/clock.ts';
import { description, type FakeConnection } from '../testing/connection.ts';
import { mdns, plan, reflexive, setUp } from '../testing/link.ts';
import { highWater, lowWater } from './channels.ts';

test('a link says when its packets take another way, and knows whether that is a relay', async () => {
  const { connection, link, open } = setUp();
  const iceTransport: { onselectedcandidatepairchange?: () => void } = {};
  Object.assign(connection, { sctp: { transport: { iceTransport } } });
  await open();
  iceTransport.onselectedcandidatepairchange!();
  await settle();
  const seen: string[] = [];
  link.onMoved = () => seen.push(link.path());
  connection.stats = [
    { id: 'T', type: 'transport', selectedCandidatePairId: 'P' },
    { id: 'P', type: 'candidate-pair', localCandidateId: 'L', remoteCandidateId: 'R' },
    { id: 'L', type: 'local-candidate', candidateType: 'relay' },
    { id: 'R', type: 'remote-candidate', candidateType: 'host' },
  ];
  iceTransport.onselectedcandidatepairchange!();
  await settle();
  expect(seen).toEqual(['relay']);
});

describe('a link that offers', () => {
  test('makes the channels of the plan in-band, control ordered and the others not', async () => {
    const { link, connection, signal } = setUp();
    link.offer();
    await settle();
    expect(signal).toHaveBeenCalledExactlyOnceWith({ kind: 'offer', sdp: 'v=0 offer', plan, early: true });
    expect(connection.channels.map(({ label, ordered }) => [label, ordered])).toEqual([
      ['lw.control', true],
      ['lw.ack', false],
      ['lw.data.0', false],
      ['lw.data.1', false],
    ]);
  });

  test('is given on once control and data are open', async () => {
    const { connection, link, offered, opened } = setUp();
    await offered();
    for (const label of ['lw.control', 'lw.data.0', 'lw.ack']) connection.channel(label).open();
    await settle();
    expect(opened).not.toHaveBeenCalled();
    connection.channel('lw.data.1').open();
    await settle();
    expect(opened).toHaveBeenCalledExactlyOnceWith(link);
    expect(link.state).toBe('open');
  });

  test('is given on as soon as they are, where the path is known by then', async () => {
    const { connection, link, offered, opened } = setUp();
    connection.stats = [
      { id: 'T', type: 'transport', selectedCandidatePairId: 'P' },
      { id: 'P', type: 'candidate-pair', localCandidateId: 'L', remoteCandidateId: 'R' },
      { id: 'L', type: 'local-candidate', candidateType: 'relay' },
      { id: 'R', type: 'remote-candidate', candidateType: 'host' },
    ];
    await offered();
    connection.become('connected');
    await settle();
    // Statistics that take a while hold nothing up any more.
    connection.getStats = () => new Promise(() => {});
    connection.openAll();
    await settle();
    expect(opened).toHaveBeenCalledExactlyOnceWith(link);
    expect(link.path()).toBe('relay');
  });

  test('takes the lower figures of the two plans', async () => {
    const { connection, link, offered, opened } = setUp();
    await offered({ v: 1, data: 1, message: 1_200 });
    connection.channel('lw.control').open();
    connection.channel('lw.data.0').open();
    await settle();
    expect(opened).toHaveBeenCalled();
    expect(link.maxMessage).toBe(1_200);
  });

  test('signals candidates after the offer, and takes those of the other side after its answer', async () => {
    const { connection, link, signal } = setUp();
    connection.candidate(mdns);
    connection.candidate(null);
    expect(signal).not.toHaveBeenCalled();
    link.offer();
    await settle();
    expect(signal.mock.calls.map(([body]) => body)).toEqual([
      { kind: 'offer', sdp: 'v=0 offer', plan, early: true },
      { kind: 'candidate', candidate: mdns, sdp_mid: '0', sdp_m_line_index: 0 },
      { kind: 'end' },
    ]);
    link.receive({ kind: 'candidate', candidate: reflexive });
    expect(connection.candidates).toEqual([]);
    link.receive({ kind: 'answer', sdp: description, plan });
    await settle();
    expect(connection.candidates).toEqual([reflexive]);
  });

  test('hears what the answer said once the link is open, before what the channels say', async () => {
    const seen: number[][] = [];
    const { connection, link } = setUp({
      opened: (open) => {
        open.onControl = (message) => seen.push([...message]);
      },
    });
    link.offer();
    await settle();
    link.receive({ kind: 'answer', sdp: description, plan, said: ['AQID', 'BA'] });
    await settle();
    expect(seen).toEqual([]);
    const control = connection.channel('lw.control');
    control.open();
    control.say(5);
    for (const label of ['lw.ack', 'lw.data.0', 'lw.data.1']) connection.channel(label).open();
    await settle();
    expect(seen).toEqual([[1, 2, 3], [4], [5]]);
  });
});

describe('a link that answers', () => {
  test('answers with the agreed plan and lets the surplus channels be', async () => {
    const { connection, link, signal, opened } = setUp();
    link.answer(description, { v: 1, data: 4, message: 8_000 });
    await settle();
    expect(signal).toHaveBeenCalledWith({
      kind: 'answer',
      sdp: 'v=0 answer',
      plan: { v: 1, data: 2, message: 8_000 },
    });
    for (const label of ['lw.control', 'lw.ack', 'lw.data.0', 'lw.data.1', 'lw.data.2', 'lw.data.3']) {
      connection.incoming(label);
    }
    await settle();
    expect(opened).toHaveBeenCalled();
    expect(connection.channels.every(({ readyState }) => readyState === 'open')).toBe(true);
  });

  test('leaves the handshake to a program that offers, and begins that with a browser', async () => {
    const init = 'a=sctp-init:AQAAAA==\r\n';
    for (const [offer, setup] of [
      [description, 'actpass'],
      [description + init, 'active'],
      [description.replace('actpass', 'passive') + init, 'passive'],
    ] as const) {
      const { connection, link } = setUp();
      link.answer(offer, plan);
      await settle();
      expect(connection.remoteDescription!.sdp).toContain(`\r\na=setup:${setup}\r\n`);
    }
  });

  test('keeps what the peer sends before the engine listens', async () => {
    const seen: number[][] = [];
    const { connection, link } = setUp({
      opened: (open) => {
        open.onControl = (message) => seen.push([...message]);
      },
    });
    link.answer(description, plan);
    await settle();
    const control = connection.incoming('lw.control');
    control.say(1, 2, 3);
    connection.incoming('lw.data.0');
    connection.incoming('lw.data.1');
    await settle();
    control.say(4);
    expect(seen).toEqual([[1, 2, 3], [4]]);
  });

  test('keeps what an honest peer says for as long as the statistics may take', async () => {
    const seen: number[] = [];
    const { clock, connection, link, failed } = setUp({
      opened: (open) => {
        open.onControl = (message) => seen.push(message[0]!);
      },
    });
    connection.getStats = () => new Promise(() => {});
    link.answer(description, plan);
    await settle();
    connection.become('connected');
    const control = connection.incoming('lw.control');
    connection.incoming('lw.data.0');
    connection.incoming('lw.data.1');
    for (let i = 0; i < 44; i++) {
      control.say(i);
      await clock.advance(50);
    }
    expect(failed).not.toHaveBeenCalled();
    expect(seen).toEqual([...Array(44).keys()]);
  });

  test.each([
    [1, 256],
    [65_535, 32],
  ])('keeps of messages of %d bytes no more than %d', async (bytes, most) => {
    const { connection, link, failed } = setUp();
    connection.getStats = () => new Promise(() => {});
    link.answer(description, plan);
    await settle();
    connection.become('connected');
    const control = connection.incoming('lw.control');
    const say = () => control.onmessage?.({ data: new ArrayBuffer(bytes) });
    for (let i = 0; i < most; i++) say();
    await settle();
    expect(failed).not.toHaveBeenCalled();
    say();
    await settle();
    expect(failed).toHaveBeenCalledOnce();
  });

  test('says something with its answer where the offer takes it', async () => {
    for (const early of [true, false]) {
      const { link, signal } = setUp();
      link.answer(description, plan, early);
      await settle();
      const said = early ? ['AQID'] : undefined;
      expect(signal).toHaveBeenCalledWith({ kind: 'answer', sdp: 'v=0 answer', plan, said });
      expect(link.greeted).toEqual(early ? ['ab'] : undefined);
    }
  });

  test('says the certificates that the offer wants', async () => {
    const greeting = vi.fn(() => undefined);
    const { link } = setUp({ greeting });
    link.answer(description, plan, true, ['AQEBAQEBAQEBAQEBAQEBAQ']);
    await settle();
    expect(greeting).toHaveBeenCalledExactlyOnceWith(['01'.repeat(16)]);
  });

  test('refuses an unknown version, and a description that is none or that the browser does not take', async () => {
    for (const [sdp, version, reason] of [
      [description, 2, 'plan'],
      ['v=0', 1, 'refused'],
      [description.replace('mid:0', 'mid:bad'), 1, 'refused'],
    ] as const) {
      const { connection, link, signal, failed } = setUp();
      link.answer(sdp, { ...plan, v: version });
      await settle();
      expect(signal).toHaveBeenCalledWith({ kind: 'fail', reason });
      expect(failed).toHaveBeenCalledWith({ fail: reason });
      expect(connection.closed).toBe(true);
    }
  });
});

describe('channels', () => {
  test('unknown ones are closed and counted; the ninth ends the link', async () => {
    const { connection, open, closed } = setUp();
    await open();
    for (let i = 0; i < 8; i++) expect(connection.incoming(`x${i}`).readyState).toBe('closed');
    expect(closed).not.toHaveBeenCalled();
    connection.incoming('lw.control');
    expect(closed).toHaveBeenCalledWith('protocol-error');
    expect(connection.closed).toBe(true);
  });

  test('data goes to the emptiest channel and stops at the bound', async () => {
    const { connection, link, open } = setUp();
    await open();
    const drain = vi.fn();
    link.onDrain = drain;
    const message = new Uint8Array(16_384);
    let sent = 0;
    while (link.sendData(message)) sent++;
    expect(sent).toBe((2 * highWater) / 16_384);
    const channels = [connection.channel('lw.data.0'), connection.channel('lw.data.1')];
    expect(channels.map(({ sent: s }) => s.length)).toEqual([8, 8]);
    channels[0]!.drainTo(lowWater);
    expect(drain).toHaveBeenCalledOnce();
    expect(link.sendData(message)).toBe(true);
    expect(channels[0]!.sent).toHaveLength(9);
  });

  test.each([
    ['text', (c: FakeConnection) => c.channel('lw.control').onmessage?.({ data: 'hi' })],
    ['a data message above the plan', (c: FakeConnection) => c.channel('lw.data.0').say(...new Array(2_000).fill(0))],
  ])('%s ends the link', async (_name, act) => {
    const { connection, link, open, closed } = setUp();
    await open({ v: 1, data: 2, message: 1_200 });
    const onClose = vi.fn();
    link.onClose = onClose;
    act(connection);
    expect(closed).toHaveBeenCalledWith('protocol-error');
    expect(onClose).toHaveBeenCalledWith('protocol-error');
  });

  test('a close says bye first and tells its caller alone', async () => {
    const { clock, connection, link, open, closed } = setUp();
    await open();
    const onClose = vi.fn();
    link.onClose = onClose;
    link.close('idle', 2);
    expect([...connection.channel('lw.control').sent[0]!]).toEqual([0x50, 2]);
    expect(connection.closed).toBe(false);
    await clock.advance(1_000);
    expect(connection.closed).toBe(true);
    expect(onClose).not.toHaveBeenCalled();
    expect(closed).toHaveBeenCalledWith('idle');
    expect(clock.pending).toBe(0);
    link.sendControl(new Uint8Array([1]));
    expect(link.sendData(new Uint8Array([1]))).toBe(false);
  });

  test('a connection that fails later closes the link', async () => {
    const { connection, open, closed, clock } = setUp();
    await open();
    connection.become('failed');
    expect(closed).toHaveBeenCalledWith('failed');
    expect(clock.pending).toBe(0);
  });

  test('the path is that of the selected pair, and followed', async () => {
    const { clock, connection, link, open } = setUp();
    const pair = (type: string) => [
      { id: 'T', type: 'transport', selectedCandidatePairId: 'P' },
      { id: 'P', type: 'candidate-pair', localCandidateId: 'L', remoteCandidateId: 'R' },
      { id: 'L', type: 'local-candidate', candidateType: type },
      { id: 'R', type: 'remote-candidate', candidateType: 'host' },
    ];
    connection.stats = pair('relay');
    await open();
    expect(link.path()).toBe('relay');
    connection.stats = pair('prflx');
    await clock.advance(10_000);
    expect(link.path()).toBe('direct');
  });
});

describe('a link that is closed while it opens', () => {
  test.each([
    ['a peer that was reached has left', 'connected', 'gone'],
    ['nothing was reached', 'connecting', 'timeout'],
  ] as const)('%s', async (_, state, reason) => {
    const { connection, offered, failed, signal } = setUp();
    await offered();
    connection.become(state);
    connection.channel('lw.control').onclose!();
    await settle();
    expect(failed).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ fail: reason }));
    expect(signal).toHaveBeenLastCalledWith({ kind: 'fail', reason });
  });
});

describe('an answer', () => {
  test('to an answer changes nothing', async () => {
    const { link, connection, closed } = setUp();
    link.answer(description, plan);
    await settle();
    for (const label of ['lw.control', 'lw.data.0', 'lw.data.1']) connection.incoming(label);
    await settle();
    link.receive({ kind: 'answer', sdp: description.replace('abcd', 'efgh'), plan: { v: 1, data: 2, message: 1_200 } });
    await settle();
    expect(connection.remoteDescription!.sdp).toContain('a=ice-ufrag:abcd');
    expect(link.maxMessage).toBe(16_384);
    expect(closed).not.toHaveBeenCalled();
  });
});
