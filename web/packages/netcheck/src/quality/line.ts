/** The client's end of a quality test: a peer connection to the server with two channels (spec/probe.md, Quality by data channel). */
import { aborted, CheckError } from '../error.ts';
import type { Server } from '../server.ts';
import type { Series } from '../tcp/received.ts';
import { type Control, decodeControl, type ErrorCode, encodeControl, type Load, type Run } from '../wire/control.ts';
import { decodeMessage } from '../wire/probe.ts';
import { leastLate, maxSize, mostLate, patience } from '../wire/quality.ts';
import { LaneLoad } from './lane.ts';
import { Outlet } from './outlet.ts';
import { Asked, event, lengthOf, Stream } from './stream.ts';

const openWithin = 10_000; // ms; a far line has openTrips times the answer's time
const openTrips = 8;
const openMost = 20_000;
const beat = 100; // ms between two counts of a load
const endWithin = 1_000; // ms after a load for the server's last word, which no figure needs

/** Posts an offer and gives the answer. */
export type Signal = (offer: string) => Promise<string>;

export class Line {
  /** Both channels are open. */
  readonly opened = event();
  /** The connection is over; `reason` says why. */
  readonly over = event();
  reason = '';
  /** What the server has said of the connection before it ended it. */
  code: ErrorCode | undefined;
  /** When something came last, ms. */
  heard = performance.now();
  /** How long the answer to the offer took, ms. */
  answered = 0;
  private readonly connection: RTCPeerConnection;
  private readonly quality: RTCDataChannel;
  private readonly control: RTCDataChannel;
  private readonly streams = new Map<number, Asked>();
  private readonly outlet: Outlet;
  /** The largest round trip, µs: messages down are as late as the line is long, and only echoes show how long it is. */
  private longest = 0;

  constructor() {
    this.connection = new RTCPeerConnection();
    this.quality = this.connection.createDataChannel('quality', { ordered: false, maxRetransmits: 0 });
    this.control = this.connection.createDataChannel('control');
    this.quality.binaryType = 'arraybuffer';
    this.quality.onmessage = ({ data }) => this.message(data, now());
    this.outlet = new Outlet(this.quality, this.over, now);
    this.control.onmessage = ({ data }) => this.said(data);
    for (const channel of [this.quality, this.control]) {
      channel.onopen = () => {
        this.heard = performance.now();
        if (this.quality.readyState === 'open' && this.control.readyState === 'open') this.opened.happen();
      };
      channel.onclose = () => this.end('the connection has ended');
    }
    this.connection.onconnectionstatechange = () => {
      if (this.connection.connectionState === 'failed') this.end('no packets go through');
    };
  }

  /** Connects; the server needs none of our candidates. Rejects if signaling does. */
  async connect(signal: Signal): Promise<void> {
    const offer = await this.connection.createOffer();
    await this.connection.setLocalDescription(offer);
    const answer = await signal(offer.sdp!);
    await this.connection.setRemoteDescription({ type: 'answer', sdp: answer });
  }

  /** Runs streams at once, and adds them to a list that can be looked at meanwhile. */
  async run(runs: readonly Run[], all: Stream[] = []): Promise<Stream[]> {
    all.push(...runs.map((run) => new Stream(run)));
    for (const stream of all) this.streams.set(stream.run.stream, stream);
    await Promise.all(all.map((stream) => this.one(stream)));
    return all;
  }

  /**
   * Has a load that gives way run for its time. Gives bytes of messages and by when they had come; `glance` hears that
   * meanwhile. It is undefined where the line has ended, or was silent for so many ms. A line has one load.
   */
  async load(load: Load, silence: number, glance: (came: Series) => void): Promise<Series | undefined> {
    const asked = new Asked();
    this.streams.set(load.stream, asked);
    const channel = this.connection.createDataChannel('lane', { ordered: false });
    channel.onclose = () => this.end('the connection has ended');
    const lane = new LaneLoad(channel, load.direction, () =>
      this.end('the server sent on channel lane what it must not'),
    );
    try {
      this.say(load);
      if (!(await asked.ready.within(mostLate + silence))) this.end('the server does not begin the load');
      if (asked.refused) this.end(asked.refused);
      if (!this.over.happened) lane.begin();
      const came = await this.watch(load, silence, () => lane.bytes, glance);
      lane.stop();
      if (load.direction === 'up') this.say({ type: 'sent', stream: load.stream });
      if (came) await asked.ended.within(endWithin);
      return came;
    } finally {
      lane.stop();
    }
  }

  close(): void {
    this.end('closed');
    this.connection.close();
  }

  /** Ends what runs; `close` gives the connection back. */
  end(reason: string): void {
    if (this.over.happened) return;
    this.reason = reason;
    this.over.happen();
    for (const { ready, ended, whole } of this.streams.values()) for (const e of [ready, ended, whole]) e.happen();
    this.outlet.pump();
  }

  private say(control: Control): void {
    if (this.control.readyState === 'open') this.control.send(encodeControl(control));
  }

  private async watch(
    { time_us }: Load,
    silence: number,
    bytes: () => number,
    glance: (came: Series) => void,
  ): Promise<Series | undefined> {
    const began = now();
    let heard = 0;
    const came: [number, number][] = [[0, bytes()]];
    while (!(await this.over.within(beat))) {
      const [at, count] = [now() - began, bytes()];
      if (count > came.at(-1)![1]) heard = at;
      came.push([at, count]);
      if (at - heard >= silence * 1000) this.end('nothing comes');
      else if (at >= time_us) return came;
      else glance(came);
    }
    return undefined;
  }

  /** The caller ends the line when it is silent for too long. */
  private async one(stream: Stream): Promise<void> {
    const { run, ready, ended, whole } = stream;
    const until = performance.now() + lengthOf(run) + patience;
    const left = () => Math.max(0, until - performance.now());
    this.say(run);
    await ready.within(left());
    if (run.direction !== 'down') {
      stream.sent(await this.outlet.send(stream));
      this.say({ type: 'sent', stream: run.stream });
    }
    if (!(await ended.within(left()))) this.end('the server does not end a stream');
    if (run.direction !== 'up') {
      await whole.within(Math.min(left(), mostLate, Math.max(leastLate, (4 * this.longest) / 1000)));
    }
    stream.close();
    if (stream.refused && !this.over.happened) this.end(stream.refused);
  }

  private message(data: unknown, at: number): void {
    this.heard = performance.now();
    if (!(data instanceof ArrayBuffer) || data.byteLength > maxSize) return;
    try {
      const message = decodeMessage(data);
      const stream = this.streams.get(message.stream);
      if (stream instanceof Stream && stream.run.direction === (message.type === 'echo' ? 'echo' : 'down')) {
        if (message.type === 'echo') this.longest = Math.max(this.longest, at - message.sent);
        stream.arrived(message, at);
      }
    } catch {
      // What is malformed is lost.
    }
  }

  private said(data: unknown): void {
    this.heard = performance.now();
    let control: Control;
    try {
      control = decodeControl(String(data));
    } catch (error) {
      this.end(String(error));
      return;
    }
    if (control.type === 'error' && control.stream === undefined) {
      this.code = control.code;
      this.end(`${control.text} (${control.code})`);
      return;
    }
    const stream = this.streams.get(control.stream!);
    if (!stream) return;
    switch (control.type) {
      case 'ready':
        stream.ready.happen();
        break;
      case 'record':
        stream.record(control.arrivals);
        break;
      case 'end':
        stream.ended.happen();
        break;
      case 'error':
        stream.refused = `${control.text} (${control.code})`;
        for (const e of [stream.ready, stream.ended, stream.whole]) e.happen();
    }
  }
}

/** A line; undefined: the browser lacks peer connections, or refuses them, as a policy or an extension has it. */
export function openLine(): Line | undefined {
  try {
    return new Line();
  } catch {
    return undefined;
  }
}

/** Connects a line to a server; false: no data channel opens. Rejects with a `CheckError` where the server refuses it, or the page ends it. */
export async function connects(line: Line, server: Server, signal: AbortSignal): Promise<boolean> {
  try {
    await line.connect(async (offer) => {
      const asked = performance.now();
      const answer = await server.offer(offer, signal);
      line.answered = performance.now() - asked;
      return answer;
    });
  } catch (error) {
    if (signal.aborted) throw aborted(signal);
    if (error instanceof CheckError) throw error;
    // The browser does not take the answer, or makes no offer.
    return false;
  }
  const long = Math.min(openMost, Math.max(openWithin, openTrips * line.answered));
  const open = await Promise.race([line.opened.within(long), line.over.within(long).then(() => false)]);
  if (signal.aborted) throw aborted(signal);
  return open;
}

/** µs of this page's clock. */
const now = () => Math.round(performance.now() * 1000);
