import { readFileSync } from 'node:fs';
import { describe, expect, it, test } from 'vitest';
import type { LinkCloseReason } from '../ports.ts';
import { FakeClock } from '../testing/clock.ts';
import type { Peer, Watched } from './ports.ts';
import { createSilence, createVigil, type Silence } from './silence.ts';

interface Case {
  name: string;
  links: string[];
  steps: { after_ms?: number; came?: number[]; owed?: number[]; unheard: number[]; adrift?: boolean }[];
}

const file = new URL('../../../../../spec/vectors/silence.json', import.meta.url);
const { cases } = JSON.parse(readFileSync(file, 'utf8')) as { cases: Case[] };

describe('when links are unheard, and a viewer adrift', () => {
  test('the file is whole', () => expect(cases.length).toBeGreaterThanOrEqual(10));

  test.each(cases)('$name', ({ links, steps }) => {
    const look = createVigil();
    const all: Watched[] = links.map((to) => ({
      came: false,
      owed: false,
      viewer: to === 'viewer',
      unheard: 0,
      since: 0,
      namedUntil: 0,
    }));
    let now = 5_000;
    for (const [n, step] of steps.entries()) {
      now += step.after_ms ?? 1_000;
      for (const [i, w] of all.entries()) {
        w.came = step.came?.includes(i) ?? false;
        w.owed = step.owed?.includes(i) ?? false;
      }
      const { adrift } = look(now, all);
      expect([all.map(({ unheard }) => unheard), adrift], `look ${n}`).toEqual([step.unheard, step.adrift ?? false]);
    }
  });
});

/** Two viewers, of which the second owes something. */
function setUp() {
  const clock = new FakeClock();
  const told: string[] = [];
  let moved = () => {};
  const peers: Peer[] = [];
  let silence: Silence;
  for (const name of ['a', 'b']) {
    const peer = {
      ready: true,
      watched: { came: false, owed: false, viewer: true, unheard: 0, since: clock.now(), namedUntil: 0 },
      supply: { downloads: { all: new Map(name === 'b' ? [[1, {}]] : []) } },
      ping: () => told.push(`ping ${name}`),
      drop: (reason: LinkCloseReason) => {
        told.push(`${reason} ${name}`);
        peers.splice(peers.indexOf(peer), 1);
        silence.gone(peer, reason);
      },
    } as unknown as Peer;
    peers.push(peer);
  }
  silence = createSilence({
    clock,
    linked: () => [...peers],
    hurry: (woke) => told.push(woke ? 'woke' : 'hurry'),
    onMoved(f) {
      moved = f;
      return () => told.push('released');
    },
  });
  const [a, b] = peers as [Peer, Peer];
  const speak = (...list: Peer[]) => {
    for (const { watched } of list) watched.came = true;
  };
  const again = (name: string) => () => void told.push(`again ${name}`);
  const take = () => told.splice(0);
  return { clock, a, b, silence, speak, again, take, moved: () => moved() };
}

describe('silence', () => {
  it('of all peers is this side’s: pings, then another socket, once', async () => {
    const { clock, a, b, silence, speak, take } = setUp();
    speak(a, b);
    await clock.advance(1_000);
    expect(take()).toEqual([]);
    await clock.advance(1_000);
    expect(take()).toEqual(['ping a', 'ping b']);
    await clock.advance(1_999);
    expect([take(), silence.drifted()]).toEqual([[], false]);
    await clock.advance(1);
    expect([take(), silence.drifted()]).toEqual([['hurry'], true]);
    // Once more is for a peer that was heard meanwhile, and is not so soon.
    speak(a);
    await clock.advance(14_999);
    expect([take(), silence.drifted()]).toEqual([['ping a'], true]);
    await clock.advance(1);
    expect(silence.drifted()).toBe(false);
    silence.stop();
    expect(clock.pending).toBe(0);
  });

  it('of one while another speaks is nothing', async () => {
    const { clock, a, silence, speak, take } = setUp();
    for (let s = 0; s < 8; s++) {
      speak(a);
      await clock.advance(1_000);
    }
    expect([take(), silence.drifted()]).toEqual([[], false]);
  });

  it('is not waited for where the browser says that the network is another', async () => {
    const { clock, a, b, silence, speak, take, moved } = setUp();
    speak(a, b);
    await clock.advance(900);
    moved();
    expect([take(), silence.drifted()]).toEqual([['hurry'], true]);
    await clock.advance(199);
    expect(take()).toEqual([]);
    await clock.advance(1);
    expect(take()).toEqual(['ping a', 'ping b']);
    speak(b);
    await clock.advance(500);
    // As if for the second time: a peer that was not heard gives way to one that the tracker names.
    expect([a.watched.unheard, b.watched.unheard]).toEqual([2, 0]);
    await clock.advance(1_000);
    expect(a.watched.unheard).toBe(3);
    silence.stop();
    expect([take(), clock.pending]).toEqual([['ping b', 'released'], 0]);
  });

  it('of a machine that slept is asked about, and told if it was long', async () => {
    const { clock, a, b, speak, take } = setUp();
    speak(a, b);
    await clock.advance(1_000);
    clock.sleep(9_000);
    await clock.advance(0);
    expect([take(), a.watched.unheard, b.watched.unheard]).toEqual([['ping a', 'ping b'], 1, 1]);
    speak(a, b);
    await clock.advance(1_000);
    clock.sleep(60_000);
    await clock.advance(0);
    expect(take()).toEqual(['ping a', 'ping b', 'woke']);
  });
});

describe('a peer that the tracker names while there is a link to it', () => {
  it('is offered another once the link is silent, and not while it speaks', async () => {
    const { clock, a, b, silence, speak, again, take } = setUp();
    silence.named(b, again('b'));
    speak(a, b);
    await clock.advance(2_000);
    expect(take()).toEqual(['ping a', 'ping b']);
    await clock.advance(1_000);
    // Two looks, and long enough after the link's own offer.
    expect(take()).toEqual(['timeout b', 'again b']);
    silence.named(a, again('a'));
    await clock.advance(0);
    expect(take()).toEqual(['timeout a', 'again a']);
  });

  it('is offered another when the link ends for want of an answer, within a minute', async () => {
    for (const [reason, afterMs, expected] of [
      ['failed', 59_999, ['again a']],
      ['timeout', 59_999, ['again a']],
      ['failed', 60_000, []],
      ['stalled', 10_000, []],
      ['closed', 10_000, []],
    ] as const) {
      const { clock, a, b, silence, speak, again, take } = setUp();
      silence.named(a, again('a'));
      for (let ms = 0; ms < afterMs; ms += 1_000) {
        speak(a, b);
        await clock.advance(Math.min(1_000, afterMs - ms));
      }
      silence.gone(a, reason);
      await clock.advance(0);
      expect(take(), `${reason} after ${afterMs} ms`).toEqual(expected);
    }
  });

  it('is not offered another while it would not hear it', async () => {
    const { clock, a, silence, again, take } = setUp();
    silence.named(a, again('a'));
    silence.gone(a, 'failed');
    await clock.advance(2_499);
    expect(take().filter((what) => what.startsWith('again'))).toEqual([]);
    await clock.advance(1);
    expect(take().filter((what) => what.startsWith('again'))).toEqual(['again a']);
  });
});
