/**
 * What two pages compute for a message, in virtual time: each takes and gives 5 Mbit/s over one link of 40 ms, in the foreground under the
 * controller, as `leeway-lab bench transfer --case page/5-5mbit` has it. `LEEWAY_BEFORE=/other/tree/web npx vitest bench --run messages` plays
 * another tree in turn with this one, and prints the ratio. The rates that vitest prints mean nothing here.
 */

import { bench } from 'vitest';
import { inspection } from '../link/inspect.ts';
import { description, FakeChannel, FakeConnection } from '../testing/connection.ts';
import { Line, Thread, Time } from '../testing/line.ts';

const nobody = '0'.repeat(32);
const segment = `01${'0'.repeat(30)}`;
const pieces = 512;
const rate = 625_000;
const delayMs = 20;
/** Pieces that are asked for and have not come, and how many of them one request names. */
const outstanding = 256;
const batch = 16;
const warmMs = 10_000;
const runMs = 30_000;
const rounds = 9;

/** The modules of a tree, in the types of this one. */
const modules = async (core: string) => ({
  ...((await import(`${core}/background/background.ts`)) as typeof import('../background/background.ts')),
  ...((await import(`${core}/link/link.ts`)) as typeof import('../link/link.ts')),
  ...((await import(`${core}/transfer/peer.ts`)) as typeof import('./peer.ts')),
  ...((await import(`${core}/protocol/peer.ts`)) as typeof import('../protocol/peer.ts')),
});
type Tree = Awaited<ReturnType<typeof modules>>;

/** A channel whose messages pass a line. */
class Channel extends FakeChannel {
  other?: Channel;
  line!: Line;
  messages = 0;

  override send(message: Uint8Array): void {
    const data = message.slice().buffer;
    const { time } = this.line;
    this.messages++;
    this.bufferedAmount += message.length;
    time.setTimer(() => {
      this.bufferedAmount -= data.byteLength;
    }, 0.1);
    time.setTimer(() => this.other!.onmessage!({ data }), this.line.pass(message.length) + delayMs);
  }
}

class Connection extends FakeConnection {
  override createDataChannel(label: string, { ordered = true }: RTCDataChannelInit = {}): Channel {
    const channel = new Channel(label, ordered);
    this.channels.push(channel);
    return channel;
  }
}

/** One page: what it asks for once its link is open. */
const page = (tree: Tree, time: Time) => {
  const connection = new Connection();
  const content = new Uint8Array(tree.pieceSize * pieces);
  const alarm = new Thread(time).alarm(true);
  const clock = { now: () => time.now(), setTimer: time.setTimer.bind(time), clearTimer: time.clearTimer.bind(time) };
  const background = tree.createBackground({ clock, alarm, soon: time.soon });
  let next = 0;
  let owed = 0;
  let came = 0;
  let peer: ReturnType<Tree['createPeer']>;
  const ask = (count: number) => {
    for (let left = count; left > 0; left -= batch) {
      const requests = Array.from({ length: Math.min(left, batch) }, () => {
        const sentUs = Math.floor(time.now() * 1000);
        const piece = next++ % pieces;
        const wanted = { segment, piece, length: tree.pieceSize, lane: 0 as const, reason: 'bench', sentUs };
        return { id: peer.supply.downloads.add(wanted).id, piece };
      });
      peer.send({ type: 'request', segment, lane: tree.laneForeground, requests });
    }
  };
  const link = tree.createLink({
    id: 'L',
    peer: nobody,
    role: 'viewer',
    connection: connection as unknown as RTCPeerConnection,
    clock,
    gated: Promise.resolve(false),
    asks: false,
    udpServers: false,
    relayOnly: false,
    inspection: () => inspection,
    greeting: () => undefined,
    signal: () => {},
    failed: ({ fail }) => {
      throw new Error(fail);
    },
    closed: (reason) => {
      throw new Error(reason);
    },
    opened(open) {
      peer = tree.createPeer(
        open,
        {
          clock,
          self: () => nobody,
          swarm: nobody,
          background: () => background,
          uploads: {
            piece: (_, n) => content.subarray(n * tree.pieceSize, (n + 1) * tree.pieceSize),
            pieces: () => pieces,
            allowed: () => true,
            queued: () => 0,
            idle: () => true,
            drained: () => {},
          },
          greeting: { announcement: () => undefined, held: () => [], flags: () => tree.flagBackground },
          silence: { drifted: () => false },
          stats: { count: () => {}, wasted: () => {} },
          verification: {
            piece(_, download) {
              peer.supply.downloads.remove(download);
              came += download.length;
              if (++owed < batch) return;
              owed = 0;
              ask(batch);
            },
            asked: () => {},
            certificate: () => {},
            none: () => {},
          },
        },
        { ready: () => ask(outstanding), sent: () => {}, closed: () => {}, changed: () => {} },
      );
    },
  });
  return {
    link,
    connection,
    came: () => came,
    messages: () => connection.channels.reduce((sum, c) => sum + (c as Channel).messages, 0),
  };
};

/** Plays two pages; gives the µs of processors for each message that one sends and the other gets, acks and requests among them. */
const play = async (tree: Tree) => {
  const time = new Time();
  const both = [page(tree, time), page(tree, time)] as const;
  const plan = { v: 1, data: 2, message: 16_384 };
  const pause = () => new Promise((resolve) => setTimeout(resolve, 20));
  for (const { link } of both) link.offer();
  await pause();
  for (const { link } of both) link.receive({ kind: 'answer', sdp: description, plan });
  await pause();
  const lines = both.map(() => new Line(time, rate));
  for (const [i, { connection }] of both.entries()) {
    for (const [n, channel] of (connection.channels as Channel[]).entries()) {
      channel.line = lines[i]!;
      channel.other = both[1 - i]!.connection.channels[n] as Channel;
    }
  }
  for (const { connection } of both) connection.openAll();
  for (let i = 0; i < 5; i++) {
    await pause();
    time.pass(1);
  }
  time.pass(warmMs);
  const count = () => both.reduce((sum, p) => sum + p.messages(), 0);
  const bytes = () => both.reduce((sum, p) => sum + p.came(), 0);
  const before = [count(), bytes()] as const;
  const from = process.cpuUsage();
  time.pass(runMs);
  const { user, system } = process.cpuUsage(from);
  const messages = count() - before[0];
  return { us: (user + system) / messages, messages, share: (bytes() - before[1]) / 2 / (runMs / 1000) / rate };
};

const median = (list: number[]): number => list.sort((a, b) => a - b)[list.length >> 1]!;

bench(
  'messages',
  async () => {
    const { LEEWAY_BEFORE } = process.env;
    const trees = [await modules(new URL('..', import.meta.url).pathname)];
    if (LEEWAY_BEFORE) trees.push(await modules(`${LEEWAY_BEFORE}/packages/core/src`));
    const us: number[][] = trees.map(() => []);
    const ratios: number[] = [];
    for (let round = -1; round < rounds; round++) {
      const now: number[] = [];
      for (const i of round % 2 ? trees.keys() : [...trees.keys()].reverse()) {
        const run = await play(trees[i]!);
        now[i] = run.us;
        if (round < 0) console.log(`${run.messages} messages, ${run.share.toFixed(3)} of the line`);
        else us[i]!.push(run.us);
      }
      if (round >= 0 && trees.length > 1) ratios.push(now[0]! / now[1]!);
    }
    const figures = us.map((list) => {
      const mid = median(list);
      return `${mid.toFixed(2)} µs a message (${list[0]!.toFixed(2)} to ${list.at(-1)!.toFixed(2)})`;
    });
    console.log(figures.join(', before '));
    if (ratios.length) {
      const mid = median(ratios);
      console.log(`ratio ${mid.toFixed(3)} (${ratios[0]!.toFixed(3)} to ${ratios.at(-1)!.toFixed(3)})`);
    }
  },
  { iterations: 1, time: 0, warmupIterations: 0, warmupTime: 0 },
);
