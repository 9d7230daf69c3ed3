import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { PartsMessage } from '../protocol/parts.ts';
import { fromHex, pieceCount, pieceLength, pieceSize, hex as toHex } from '../segment/segment.ts';
import type { Act, Check, Verify } from './act.ts';
import { judged } from './arrive.ts';
import { goOn } from './packager.ts';
import { Node } from './parts.ts';
import { type Content, size, turnOf } from './shelf.ts';
import type { Stream } from './stream.ts';

/** What happens to a viewer, step by step, and what it then does. Written by internal/parts, which has the same walker. */
interface Walk {
  name: string;
  steps: { do: string; acts?: string[] }[];
}

const file = new URL('../../../../../spec/vectors/parts-node.json', import.meta.url);
const { walks } = JSON.parse(readFileSync(file, 'utf8')) as { walks: Walk[] };

const hex = (...bytes: number[]) => toHex(new Uint8Array(bytes)).padEnd(32, '0');
const firstOf = (id: string) => Number.parseInt(id.slice(0, 2), 16);
const bytesOf = (turn: number) => [turn >>> 24, (turn >> 16) & 255, (turn >> 8) & 255, turn & 255];
const sha256 = (data: Uint8Array) => createHash('sha256').update(data).digest();

/** The part of the walks at a turn of a stream. */
const walked = (stream: number, turn: number) => ({
  segment: hex(0x80, stream, ...bytesOf(turn)),
  data: Uint8Array.from({ length: 20_000 + ((turn * 7919) % 60_000) }, (_, i) => turn * 31 + i + (i >> 8)),
});

const pieceOf = (data: Uint8Array, i: number) =>
  data.subarray(i * pieceSize, i * pieceSize + pieceLength(data.length, i));

const contents = new Map<string, Content>();
const content = (stream: number, turn: number, alg = 1): Content => {
  const key = `${stream} ${turn} ${alg}`;
  const known = contents.get(key) ?? newContent(stream, turn, alg);
  contents.set(key, known);
  return known;
};

/** What a seed has signed of a part, or a packager: the certificate of the walks begins with c, or with p. */
const newContent = (stream: number, turn: number, alg: number): Content => {
  const { segment, data } = walked(stream, turn);
  const digests = Array.from({ length: pieceCount(data.length) }, (_, i) => sha256(pieceOf(data, i)));
  const raw = new Uint8Array([alg === 2 ? 0x70 : 0x63, stream, ...bytesOf(turn)]);
  return { segment, length: data.length, digests: new Uint8Array(Buffer.concat(digests)), raw, alg };
};

const readSaid = (verb: string, of: string, rest: string[]): PartsMessage => {
  const stream = hex(Number(of));
  const [a = 0, b = 0, c = 0, d = 0, ...path] = rest.map(Number);
  switch (verb) {
    case 'follow':
    case 'hold':
      return { type: verb, stream, on: rest[0] === 'on' };
    case 'place':
      return { type: verb, stream, stripe: a, rank: b, room: c, least: d, path: path.map((p) => hex(p)) };
    case 'subscribe':
      return { type: verb, stream, stripe: a, slots: b };
    case 'unsubscribe':
    case 'end':
      return { type: verb, stream, stripe: a };
    case 'part':
      return { type: verb, stream, push: a, turn: b, certificate: fromHex(rest[2]!) };
    case 'enough':
      return { type: verb, stream, segment: rest[0]! };
  }
  throw new Error(verb);
};

const writeSaid = (m: PartsMessage): (string | number)[] => {
  switch (m.type) {
    case 'follow':
    case 'hold':
      return [m.on ? 'on' : 'off'];
    case 'place':
      return [m.stripe, m.rank, m.room, m.least, ...m.path.map(firstOf)];
    case 'subscribe':
      return [m.stripe, m.slots];
    case 'part':
      return [m.push, m.turn, toHex(m.certificate)];
    case 'enough':
      return [m.segment];
  }
  return [m.stripe];
};

const written = (a: Act): string => {
  switch (a.do) {
    case 'say':
      return ['say', firstOf(a.to), a.message.type, firstOf(a.message.stream), ...writeSaid(a.message)].join(' ');
    case 'push':
      return `push ${firstOf(a.to)} ${a.request} ${a.data.length}`;
    case 'verify':
      return `verify ${firstOf(a.from)} ${firstOf(a.stream)} ${a.turn}`;
    case 'check':
      return `check ${a.from === undefined ? 0 : firstOf(a.from)} ${firstOf(a.stream)} ${a.turn} ${a.piece}`;
    case 'fetch':
      return ['fetch', firstOf(a.stream), a.turn, ...a.runs.map((r) => `${r.first}-${r.last}`)].join(' ');
    case 'ready':
    case 'certificate':
      return `${a.do} ${firstOf(a.stream)} ${a.turn}`;
    case 'give-up':
      return `give-up ${firstOf(a.stream)}`;
    case 'blame':
      return `blame ${firstOf(a.from)} ${a.why} ${a.bytes}`;
  }
};

class Walker {
  private readonly node = new Node(hex(1));
  private readonly streams = new Map<number, Stream>();
  /** To be answered. */
  private pending: (Verify | Check)[] = [];

  /** Plays a step: a time in µs, a verb, and what it is about. Returns what the node does. */
  do(step: string): string[] {
    const [at, verb, ...rest] = step.split(' ') as [string, string, ...string[]];
    const now = Number(at);
    const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0] = rest.map(Number);
    const peer = hex(a);
    if (verb === 'linked') this.node.linked(peer, rest[1] === 'seed');
    else if (verb === 'gone') this.node.gone(now, peer);
    else if (verb === 'sent') this.node.sent(now, peer);
    else if (verb === 'heard') this.node.heard(now, peer, readSaid(rest[1]!, rest[2]!, rest.slice(3)));
    else if (verb === 'data') {
      const payload = walked(c, d).data.slice(e * pieceSize + f, e * pieceSize + f + g);
      if (rest[7] === 'wrong') payload[0]!++;
      this.node.data(now, peer, { type: 'data', request: b, offset: f, sentAt: 0, payload });
    } else if (verb === 'tick') {
      this.node.tick(now);
      return [...this.acts(), `next ${this.node.next(now)}`];
    } else if (verb === 'answer') return this.answer(now);
    else return this.stream(now, verb, a, rest.slice(1));
    return this.acts();
  }

  private stream(now: number, verb: string, id: number, rest: string[]): string[] {
    const s = this.streams.get(id)!;
    const [a = 0, b = 0, c = 0, d = 0] = rest.map(Number);
    switch (verb) {
      case 'follow':
        this.streams.set(id, this.node.follow(now, hex(id), { slots: a, part: b, whole: rest[2] === 'whole' }));
        break;
      case 'unfollow':
        this.node.unfollow(now, hex(id));
        break;
      case 'listed':
        s.listed(now, a, walked(id, b).segment, c);
        break;
      case 'expect':
        s.expect(now, a, () => true, rest[1] === 'reached');
        break;
      case 'sign':
      case 'end': {
        const p = s.shelf.part(a);
        if (verb === 'sign') size(p, walked(id, a).data.length);
        p.beside = true;
        goOn(s, now);
        break;
      }
      case 'ask':
        s.ask(now, a, { deadline: b, rtt: c, rate: d, packaged: rest[4] === 'packaged' });
        break;
      case 'loaded':
        this.node.loaded(now, hex(id), a, rest[1] === 'none' ? undefined : content(id, a, 2));
        break;
      case 'leave':
        s.asked = undefined;
        break;
      case 'origin':
        s.origin(now, a, b, pieceOf(walked(id, a).data, b));
        break;
      case 'buffer':
        s.buffer(now, a, rest[1] === 'all');
        break;
      case 'has': {
        const has = (s.shelf.parts.get(a)?.pieces ?? []).flatMap((p, i) => (p.data ? [i] : []));
        return [...this.acts(), ['has', ...has].join(' ')];
      }
      default:
        throw new Error(verb);
    }
    return this.acts();
  }

  /** Answers what the node wants verified and checked, and what comes of it. */
  private answer(now: number): string[] {
    const out: string[] = [];
    for (let a = this.pending.shift(); a; a = this.pending.shift()) {
      if (a.do === 'check') this.node.checked(now, a, toHex(sha256(a.data)) === toHex(a.digest));
      else if (a.raw.length === 6 && (a.raw[0] === 0x63 || a.raw[0] === 0x70))
        judged(
          this.node,
          now,
          a,
          content(a.raw[1]!, Number.parseInt(toHex(a.raw.subarray(2)), 16), a.raw[0] === 0x70 ? 2 : 1),
        );
      else judged(this.node, now, a);
      out.push(...this.acts());
    }
    return out;
  }

  private acts(): string[] {
    return this.node.take().map((a) => {
      if (a.do === 'verify' || a.do === 'check') this.pending.push(a);
      return written(a);
    });
  }
}

it('counts turns', () => {
  expect([turnOf(2, 3), turnOf(2 ** 24 + 1, 255), turnOf(1, 256), turnOf(-1, 0)]).toEqual([
    515,
    511,
    undefined,
    undefined,
  ]);
});

it.each(walks)('the vector: $name', ({ steps }) => {
  const w = new Walker();
  for (const [i, s] of steps.entries()) expect(w.do(s.do), `step ${i}: ${s.do}`).toEqual(s.acts ?? []);
});
