import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { decodeAck, encodeAck, type Stamp } from './ack.ts';
import { Acker } from './acker.ts';
import { type Host, statsOf } from './host.ts';
import { type Path, Sender } from './path.ts';
import { Receiver, type Source } from './receiver.ts';

interface Event {
  at: number;
  do: string;
  link: number;
  args?: number[];
  then: number[];
}
interface Vectors {
  acks: { ack: [number, number, number, number, number, number]; bytes: string }[];
  cases: { name: string; why: string; events: Event[] }[];
}
const file = new URL('../../../../../spec/vectors/background.json', import.meta.url);
const vectors = JSON.parse(readFileSync(file, 'utf8')) as Vectors;

const states = ['slow-start', 'avoidance', 'slowdown', 'ramp'];
const asked = (may: true | number) => (may === true ? [1, 0] : [0, may]);
const seen = (host: Host) => {
  const s = statsOf(host);
  return [states.indexOf(s.state), s.window, s.flight, s.queuing, s.target, s.base, s.rtt, s.slowdowns, s.yields];
};

/** What a case plays on: a controller and a receiver, with the links that the events open. */
const createBench = () => {
  const c = new Sender();
  const r = new Receiver();
  const paths = new Map<number, Path>();
  const sources = new Map<number, Source>();
  const ackers = new Map<number, Acker>();
  /** What is seen of the sending side; it asks whether the next message may go out. */
  const sender = (at: number, link: number) => {
    const p = paths.get(link)!;
    const size = p.messageSize();
    const may = asked(p.maySend(at, size));
    return [...seen(c), c.ceiling.of(c.pacingRate()), p.window(), p.flight, size, p.deadline(), ...may];
  };

  /** The events of the sending side: what they do, and what is seen beside the state. */
  const send = ({ at, do: kind, link, args: a = [] }: Event, p: Path): number[] | undefined => {
    if (kind === 'reset') p.reset(at);
    else if (kind === 'beside') c.beside(at, a[0]!);
    else if (kind === 'timeout') p.onTimeout(at);
    else if (kind === 'run') {
      const [n, interval, size, rtt, owd] = a as [number, number, number, number, number];
      for (let t = at; t < at + n * interval; t += interval) {
        const { sequence: highest } = p.onSent(t, size, 0);
        const cumulative = (highest + 1) >>> 0;
        p.onAck(t + rtt, { cumulative, highest, bitmap: [0, 0], receivedAt: (t + owd) >>> 0, hold: 0 });
      }
    } else if (kind === 'send') {
      const t = p.onSent(at, a[0]!, a[1]!);
      return [...sender(at, link), t.sequence, t.sentAt, t.echo, +t.echoes, +t.ackNow];
    } else if (kind === 'ack') {
      const [cumulative, highest, high, low, receivedAt, hold] = a as [number, number, number, number, number, number];
      const o = p.onAck(at, { cumulative, highest, bitmap: [high, low], receivedAt, hold });
      const problem = o.problem ? { future: 1, cumulative: 2 }[o.problem] : 0;
      return [...sender(at, link), o.acked, o.lost, o.messages, o.rtt, problem];
    } else return undefined;
    return sender(at, link);
  };

  const receive = ({ at, do: kind, link, args: a = [] }: Event): number[] => {
    const s = sources.get(link)!;
    const k = ackers.get(link)!;
    if (kind === 'request') s.onRequest(at, a[0]!);
    else if (kind === 'gone') s.onGone(a[0]!);
    else if (kind === 'mayrequest') return asked(r.mayRequest(at));
    else if (kind === 'data') {
      const [size, sequence, sentAt, echo] = a as [number, number, number, number];
      const stamp: Stamp = { sequence, sentAt, echo, echoes: a[4] === 1, ackNow: a[5] === 1 };
      const taken = k.onData(at, size, stamp);
      const sampled = s.onData(at, size, stamp);
      return [...seen(r), +taken, k.due, +sampled];
    } else if (kind === 'make') {
      const ack = k.make(at);
      if (!ack) return [0, 0, 0, 0, 0, 0, 0];
      return [1, ack.cumulative, ack.highest, ...ack.bitmap, ack.receivedAt, ack.hold];
    } else throw new Error(`no such event: ${kind}`);
    return seen(r);
  };

  return (e: Event): number[] => {
    const { at, do: kind, link, args: a = [] } = e;
    if (kind === 'open') {
      paths.set(link, c.open(at, { payload: a[0]!, maxMessage: a[1]!, base: a[2]! }));
      return sender(at, link);
    }
    if (kind === 'source') {
      sources.set(link, r.open(at));
      ackers.set(link, new Acker());
      return seen(r);
    }
    const p = paths.get(link);
    if (kind === 'close') p!.close();
    else if (kind === 'parts') c.setParts(a[0]!);
    else if (kind === 'eager') c.eager = a[0] === 1;
    else if (kind === 'may') return asked(p!.maySend(at, a[0]!));
    else return (p && send(e, p)) ?? receive(e);
    return [];
  };
};

describe('vectors of the background transport', () => {
  it.each(vectors.cases)('$name', ({ events, why }) => {
    const play = createBench();
    for (const [i, e] of events.entries()) expect(play(e), `${why} Event ${i}: ${JSON.stringify(e)}`).toEqual(e.then);
  });

  it.each(vectors.acks)('ack $bytes', ({ ack: [cumulative, highest, high, low, receivedAt, hold], bytes }) => {
    const ack = { cumulative, highest, bitmap: [high, low] as [number, number], receivedAt, hold };
    const raw = new Uint8Array(Buffer.from(`00${bytes}`, 'hex')).subarray(1);
    expect(Buffer.from(encodeAck(ack)).toString('hex')).toBe(bytes);
    expect(decodeAck(raw)).toEqual(ack);
    expect(decodeAck(raw.subarray(0, -1))).toBeUndefined();
    expect(decodeAck(Uint8Array.of(0x31, ...raw.subarray(1)))).toBeUndefined();
  });

  it('have names of their own, and a sentence', () => {
    expect(new Set(vectors.cases.map((c) => c.name)).size).toBe(vectors.cases.length);
    expect(vectors.cases.every((c) => c.why.endsWith('.'))).toBe(true);
  });
});
