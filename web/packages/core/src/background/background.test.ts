import { describe, expect, it } from 'vitest';
import { encodeAck } from '../ledbat/ack.ts';
import { statsOf } from '../ledbat/host.ts';
import { Malformed, pieceSize } from '../protocol/peer.ts';
import { join, Line, Store, Time, Wire } from '../testing/line.ts';
import { createBackground } from './background.ts';
import type { Background, BackgroundLane, TabsPort } from './ports.ts';
import { payload, Sender } from './sender.ts';
import { createTabs } from './tabs.ts';

const slow = 125_000;
const ten = 1_250_000;

const host = (time: Time, port?: TabsPort, grain?: number): Background =>
  createBackground({
    clock: time,
    alarm: time.alarm(grain),
    soon: time.soon,
    tabs: (o) => port && createTabs({ ...o, port }),
  });

/** A host with so many links over one line, and hosts that hear it. */
const bench = (links: number, rate: number, delay: number, grain?: number) => {
  const time = new Time();
  const line = new Line(time, rate);
  const sender = host(time, undefined, grain);
  const wires: Wire[] = [];
  const stores: Store[] = [];
  const lanes: BackgroundLane[] = [];
  for (let i = 0; i < links; i++) {
    const wire = new Wire(line, delay);
    const store = new Store(1e12);
    lanes.push(join(sender, host(time, undefined, grain), wire, store)[0]);
    wires.push(wire);
    stores.push(store);
  }
  const total = () => wires.reduce((sum, w) => sum + w.bytes, 0);
  /** Bytes sent in so many seconds. */
  const during = (seconds: number) => {
    const before = total();
    time.pass(seconds * 1000);
    return total() - before;
  };
  return { time, line, sender, wires, stores, lanes, during };
};

describe('the sending side', () => {
  it('sends no more over all links than its cap, and what the line takes without one', () => {
    const b = bench(3, ten, 40);
    b.sender.cap(800);
    b.during(2);
    const capped = b.during(8) / 8;
    expect(capped).toBeGreaterThan(95_000);
    expect(capped).toBeLessThan(101_000);
    b.sender.cap(0);
    expect(b.during(8) / 8).toBeGreaterThan(400_000);
  });

  it('says how it stands, if anything was sent since the last time, and then what its line carries', () => {
    const b = bench(1, slow, 100);
    expect(b.sender.take()).toBeUndefined();
    b.during(20);
    const first = b.sender.take()!;
    const s = statsOf(b.sender.sender.host);
    expect(first).toMatchObject({
      queuing_us: s.queuing,
      base_us: s.base,
      target_us: s.target,
      window_bytes: s.window,
    });
    expect(first).toMatchObject({ yields: s.yields, slowdowns: s.slowdowns });
    expect(first.slowdowns).toBeGreaterThan(0);
    expect(b.sender.take()).toBeUndefined();
    // Of the background it is the rate that the window asks for.
    expect(first.rate / slow).toBeGreaterThan(0.9);
    expect(first.rate / slow).toBeLessThan(1.5);
    b.sender.sender.host.controller.slowdowns = 0; // it has started anew
    b.during(1);
    expect([0, 1]).toContain(b.sender.take()!.slowdowns);
  });

  it('fills the line and keeps its queue short', () => {
    const b = bench(1, slow, 100);
    b.during(20);
    let most = 0;
    for (let i = 0; i < 400; i++) {
      expect(b.during(0.1)).toBeLessThan(3 * 12_500);
      most = Math.max(most, b.line.free - b.time.now());
    }
    const s = statsOf(b.sender.sender.host);
    expect(b.wires[0]!.bytes / 60).toBeGreaterThan(0.9 * slow);
    expect(s.base).toBeGreaterThan(100_000);
    expect(s.base).toBeLessThan(150_000);
    expect(s.target).toBeGreaterThan(50_000);
    expect(most).toBeLessThan((2 * s.target) / 1000);
  });

  it('fills a faster line in whole, even packets, with alarms four milliseconds coarse', () => {
    const b = bench(1, 12_500_000, 20, 4);
    b.during(5);
    expect(b.during(5)).toBeGreaterThan(0.85 * 5 * 12_500_000);
    const [wire] = b.wires;
    for (const size of wire!.sizes) {
      expect(size % payload).toBe(0);
      expect(size === payload || (size / payload) % 2 === 0, `${size}`).toBe(true);
    }
    expect(Math.max(...wire!.sizes)).toBeGreaterThanOrEqual(8 * payload);
    expect(wire!.acks).toBeLessThan(wire!.sizes.length / 2);
  });

  it.each([
    [slow, 100],
    [600_000, 42],
    [2_500_000, 20],
  ])('fills a line of %i B/s and %i ms to hosts whose clocks are coarse, with a short queue', (rate, rtt) => {
    for (const step of [16.667, 100]) {
      const time = new Time();
      const line = new Line(time, rate);
      const wire = new Wire(line, rtt);
      const clock = {
        now: () => Math.floor(time.now() / step) * step,
        coarse: () => true,
        setTimer: time.setTimer.bind(time),
        clearTimer: time.clearTimer.bind(time),
      };
      const coarse = createBackground({ clock, alarm: time.alarm(), soon: time.soon });
      join(host(time), coarse, wire, new Store(1e12));
      time.pass(10_000);
      const before = wire.bytes;
      const waits: number[] = [];
      for (let i = 0; i < 1_000; i++) {
        time.pass(10);
        waits.push(line.free - time.now());
      }
      expect((wire.bytes - before) / 10 / rate, `${step} ms`).toBeGreaterThan(0.9);
      expect(waits.sort((a, b) => a - b)[950], `${step} ms`).toBeLessThan(60);
    }
  });

  it('serves a link on although all others send no acks', () => {
    const b = bench(5, ten, 40);
    b.during(2);
    for (const wire of b.wires.slice(1)) wire.silent = true;
    b.during(5);
    const before = b.wires[0]!.bytes;
    b.during(20);
    expect((b.wires[0]!.bytes - before) / 20).toBeGreaterThan(0.7 * ten);
  });

  it('sends nothing before the task is over in which something was asked for', () => {
    const b = bench(1, ten, 40);
    b.stores[0]!.left = 0;
    b.during(5);
    const before = b.wires[0]!.bytes;
    b.stores[0]!.left = 1e6;
    b.lanes[0]!.wake();
    expect(b.wires[0]!.bytes).toBe(before);
    expect(b.during(1)).toBeGreaterThan(0);
  });

  it('shares one window among its links, each in its turn', () => {
    const b = bench(4, ten, 40);
    const all = b.during(10);
    for (const w of b.wires) {
      expect(w.bytes).toBeGreaterThan(all / 8);
      expect(w.bytes).toBeLessThan((all * 3) / 8);
    }
    const s = statsOf(b.sender.sender.host);
    expect(s.flight).toBeLessThanOrEqual(s.window + 16_384);
    const begun = b.time.now();
    b.during(10);
    const sent = b.wires.flatMap((w, link) => w.times.filter((at) => at > begun).map((at) => ({ at, link })));
    sent.sort((x, y) => x.at - y.at);
    const changes = sent.filter((m, i) => i > 0 && m.link !== sent[i - 1]!.link).length;
    expect(changes).toBeGreaterThan(0);
    expect(changes).toBeLessThanOrEqual((10 * 1000 * 2) / 200);
    // Three links have no more: the fourth gets all of it.
    for (const s of b.stores.slice(1)) s.left = 0;
    expect(b.during(10)).toBeGreaterThan(ten * 8);
  });

  it('has foreground of one link go before what the others send in the background', () => {
    const b = bench(4, ten, 40);
    b.during(5);
    const wire = new Wire(b.line, 40);
    const store = new Store(0, true);
    const [lane] = join(b.sender, host(b.time), wire, store);
    b.during(1);
    for (let i = 0; i < 4; i++) {
      store.left = 1_000_000;
      lane.wake();
      let others = 0;
      for (let ms = 0; store.left > 0 && ms < 20_000; ms += 10) others += b.during(0.01);
      expect(store.left).toBe(0);
      // At first the new link's own start leaves room for them.
      if (i > 0) expect(others).toBeLessThan(150_000);
      b.during(1);
    }
  });

  it.each([15_000, 20_000, 20_050, 20_333, 60_000])('shares a slow line with a host that comes after %d ms', (late) => {
    const time = new Time();
    const line = new Line(time, slow);
    const [first, second] = [new Wire(line, 100), new Wire(line, 100)];
    join(host(time, undefined, 4), host(time), first, new Store(1e12));
    time.pass(late);
    join(host(time, undefined, 4), host(time), second, new Store(1e12));
    time.pass(8_000);
    const before = [first.bytes, second.bytes] as const;
    time.pass(12_000);
    const [one, two] = [first.bytes - before[0], second.bytes - before[1]];
    expect(two / (one + two)).toBeGreaterThan(0.35);
    expect(two / (one + two)).toBeLessThan(0.65);
  });

  it('tells the controller whether a load waits for what goes out', () => {
    const time = new Time();
    const sender = new Sender();
    const stores = [new Store(0), new Store(0, true)];
    const lanes = stores.map((store) => sender.add(1, new Wire(new Line(time, ten), 40), store, 0));
    const eager = (background: number, foreground: number) => {
      stores[0]!.left = background;
      stores[1]!.left = foreground;
      for (const lane of lanes) sender.wake(lane);
      sender.work(1);
      return sender.host.eager;
    };
    expect([eager(9, 0), eager(9, 9), eager(0, 9)]).toEqual([false, true, true]);
    expect(eager(0, 0)).toBe(true);
  });

  it('asks an empty source again when woken, and hears of the last message', () => {
    const b = bench(1, ten, 40);
    b.stores[0]!.left = 0;
    b.during(5);
    b.stores[0]!.left = 3000;
    b.lanes[0]!.wake();
    expect(b.during(1)).toBeGreaterThan(3000);
    expect(b.sender.sender.host.flight).toBe(0);
    expect(b.sender.sender.acked).toBe(b.sender.sender.sent);
  });

  it('tries a link again that had no room, and serves the others meanwhile', () => {
    const b = bench(2, ten, 40);
    b.wires[0]!.buffered = 100_000;
    b.during(2);
    expect(b.wires[0]!.sizes.length).toBe(0);
    expect(b.wires[1]!.sizes.length).toBeGreaterThan(100);
    b.wires[0]!.buffered = 0;
    b.during(2);
    expect(b.wires[0]!.sizes.length).toBeGreaterThan(100);
  });

  it('takes no delay from what waited in the own buffer', () => {
    const b = bench(1, slow, 100);
    b.during(5);
    const { rtt } = statsOf(b.sender.sender.host);
    // Several messages wait from now on: it goes on, and learns nothing of them.
    b.wires[0]!.buffered = 5_000;
    b.during(1);
    expect(statsOf(b.sender.sender.host).rtt).not.toBe(rtt);
    const known = statsOf(b.sender.sender.host).rtt;
    expect(b.during(5)).toBeGreaterThan(0);
    expect(statsOf(b.sender.sender.host).rtt).toBe(known);
  });

  it('sees losses by their gap', () => {
    const b = bench(1, ten, 40);
    b.wires[0]!.lost = (n) => n > 100 && n % 200 === 0;
    expect(b.during(10)).toBeGreaterThan(ten * 7);
  });

  it('times out on a silent path and comes back', () => {
    const b = bench(1, ten, 40);
    b.during(2);
    b.wires[0]!.silent = true;
    b.during(5);
    expect(b.sender.sender.host.flight).toBeLessThanOrEqual(4 * payload);
    b.wires[0]!.silent = false;
    expect(b.during(20)).toBeGreaterThan(ten * 10);
  });

  it('says of each message of the ack channel whether it can be', () => {
    const b = bench(1, ten, 40);
    b.during(1);
    const future = encodeAck({ cumulative: 2 ** 20, highest: 2 ** 20, bitmap: [0, 0], receivedAt: 0, hold: 0 });
    for (const m of [new Uint8Array(), new Uint8Array([0x30]), new Uint8Array(25), future]) {
      expect(b.lanes[0]!.ack(m)).toBe(false);
    }
  });

  it('forgets a path that is another one now', () => {
    const b = bench(1, ten, 40);
    b.during(5);
    b.lanes[0]!.reset();
    expect(statsOf(b.sender.sender.host).window).toBeLessThan(15_000);
    expect(b.during(10)).toBeGreaterThan(ten * 7);
  });

  it('goes on at once on another path, whatever the old one has lost', () => {
    const b = bench(1, ten, 40);
    b.during(5);
    b.wires[0]!.silent = true;
    b.during(0.5);
    b.wires[0]!.silent = false;
    expect(b.during(0.1)).toBe(0);
    b.lanes[0]!.reset();
    expect(b.during(0.1)).toBeGreaterThan(15_000);
  });

  it('goes on with the other links when one is closed, and ends with the last', () => {
    const b = bench(2, ten, 40);
    b.during(5);
    b.lanes[0]!.close();
    b.lanes[0]!.close();
    const before = b.wires[0]!.bytes;
    expect(b.during(5)).toBeGreaterThan(ten * 3);
    expect(b.wires[0]!.bytes).toBe(before);
    b.sender.stop();
    expect(b.during(5)).toBe(0);
    expect(() => b.lanes[0]!.data(new Uint8Array(30))).toThrow(Malformed);
  });
});

describe('the receiving side', () => {
  it('has many senders be one flow', () => {
    const time = new Time();
    const line = new Line(time, ten);
    const viewer = host(time);
    const delay = 40;
    const links = Array.from({ length: 8 }, () => {
      const store = new Store(0);
      const [near, far] = join(host(time), viewer, new Wire(line, delay), store);
      return { store, near, far, wire: undefined };
    });
    let asked = 0;
    let most = 0;
    const ask = () => {
      const may = viewer.mayRequest();
      if (may !== true) {
        time.setTimer(ask, Math.min(may, 5));
        return;
      }
      const { store, near, far } = links[asked++ % links.length]!;
      far.requested(pieceSize);
      time.setTimer(() => {
        store.left += pieceSize;
        near.wake();
      }, delay / 2);
      if (time.now() > 6_000) most = Math.max(most, viewer.receiver.flight);
      time.setTimer(ask, 0);
    };
    ask();
    time.pass(20_000);
    const r = statsOf(viewer.receiver);
    expect(asked * pieceSize).toBeGreaterThan(ten * 20 * 0.6);
    expect(r.base).toBeGreaterThan(40_000);
    // What waits at its senders is in no queue: what comes bounds it, twice that of 200 ms, and the piece by which a window may be passed.
    expect(most).toBeLessThanOrEqual((2 * ten) / 5 + pieceSize);
    for (const { far } of links) far.close();
    expect(viewer.receiver.flight).toBe(0);
  });

  it('hands on what is fresh, and takes back what will not come', () => {
    const time = new Time();
    const viewer = host(time);
    const wire = new Wire(new Line(time, ten), 40);
    const store = new Store(0);
    const [near, far] = join(host(time), viewer, wire, store);
    const seen: unknown[] = [];
    wire.arrived = (m) => seen.push(far.data(m), far.data(m));
    far.requested(1000);
    expect(viewer.receiver.flight).toBe(1000);
    store.left = 600;
    near.wake();
    time.pass(1000);
    expect(seen).toMatchObject([{ type: 'data', request: 7, offset: 0, payload: new Uint8Array(600) }, undefined]);
    far.gone(400);
    expect(viewer.receiver.flight).toBe(0);
    expect(wire.acks).toBe(1);
  });

  it('counts nothing that came for the foreground', () => {
    const time = new Time();
    const viewer = host(time);
    const wire = new Wire(new Line(time, ten), 40);
    const store = new Store(600);
    const near = host(time).add(wire, store);
    const far = viewer.add(wire, { waiting: () => false, next: () => undefined, ours: (request) => request !== 7 });
    wire.arrived = (m) => void far.data(m);
    wire.acked = (m) => void near.ack(m);
    far.requested(1000);
    time.pass(1000);
    expect(store.left).toBe(0);
    expect(wire.acks).toBe(1);
    expect(viewer.receiver.flight).toBe(1000);
  });
});
