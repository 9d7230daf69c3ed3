/** A peer connection to a server of the quality test, in time that tests set. */
import { vi } from 'vitest';
import { decodeControl, encodeControl, type Load, type Run } from '../wire/control.ts';
import { decodeMessage, encodeMessage } from '../wire/probe.ts';
import { tail } from '../wire/quality.ts';
import { serveLoad } from './lane.ts';

/**
 * never: no channel opens. silent: they open, and nothing comes. lossy: each tenth message is lost, one way only each. narrow: one
 * message leaves the browser each tenth of a second. stuck: none does. far: the way down takes 1.5 s, and its last message 3 s more. Of a load stalling: nothing passes after its first second. rude:
 * a text comes on its channel. spent: the address may have no more bytes. forbidden: the browser makes no connection. picky: it does not
 * take the server's answer.
 */
export type PeerBehavior =
  | 'never'
  | 'silent'
  | 'lossy'
  | 'narrow'
  | 'stuck'
  | 'far'
  | 'refusing'
  | 'stalling'
  | 'rude'
  | 'spent'
  | 'forbidden'
  | 'picky';

const drainEvery = 100; // ms, of a narrow line

export function stubPeer(behavior: PeerBehavior): { closed(): boolean } {
  let closed = false;
  const clock = () => Math.round(performance.now() * 1000) + 5_000_000; // five seconds ahead of the page's
  class Channel {
    readyState = 'connecting';
    bufferedAmount = 0;
    bufferedAmountLowThreshold = 0;
    binaryType = '';
    onopen: (() => void) | null = null;
    onclose: (() => void) | null = null;
    onmessage: ((event: { data: unknown }) => void) | null = null;
    onbufferedamountlow: (() => void) | null = null;
    /** What waits in the browser. */
    private readonly waiting: ArrayBuffer[] = [];
    constructor(
      readonly label: string,
      readonly peer: Peer,
    ) {}
    private hold(data: ArrayBuffer): void {
      this.bufferedAmount += data.byteLength;
      if (behavior === 'stuck') return;
      this.waiting.push(data);
      if (this.waiting.length === 1) setTimeout(() => this.drain(), drainEvery);
    }
    private drain(): void {
      const data = this.waiting.shift()!;
      const before = this.bufferedAmount;
      this.bufferedAmount -= data.byteLength;
      this.peer.got(data);
      if (this.waiting.length > 0) setTimeout(() => this.drain(), drainEvery);
      const low = this.bufferedAmountLowThreshold;
      if (before > low && this.bufferedAmount <= low) this.onbufferedamountlow?.();
    }
    send(data: string | Uint8Array<ArrayBuffer>): void {
      if (behavior === 'silent') return;
      if (typeof data === 'string') this.peer.said(data);
      else if (this.label === 'lane') this.peer.carried(data);
      else if (behavior === 'narrow' || behavior === 'stuck') this.hold(data.slice().buffer);
      else this.peer.got(data.slice().buffer);
    }
  }
  class Peer {
    connectionState = 'new';
    readonly quality = new Channel('quality', this);
    readonly control = new Channel('control', this);
    private readonly runs = new Map<number, Run>();
    private readonly records = new Map<number, [number, number, number][]>();
    onconnectionstatechange: (() => void) | null = null;

    private readonly lane = new Channel('lane', this);
    private load: ReturnType<typeof serveLoad> | undefined;
    private loadBegan = 0;

    constructor() {
      closed = behavior === 'forbidden';
      if (closed) throw new Error('NotAllowedError');
    }
    createDataChannel(label: 'quality' | 'control' | 'lane') {
      return this[label];
    }
    async createOffer() {
      return { type: 'offer', sdp: 'v=0' };
    }
    async setLocalDescription() {}
    async setRemoteDescription() {
      if (behavior === 'never') return;
      if (behavior === 'picky') throw new Error('OperationError');
      setTimeout(() => {
        for (const channel of [this.quality, this.control]) {
          channel.readyState = 'open';
          channel.onopen?.();
        }
      }, 100);
    }
    close() {
      closed = true;
      this.load?.stop();
    }
    /** What comes on channel lane, while something passes. */
    carried(data: Uint8Array) {
      if (this.passes) this.load?.take(data);
    }
    private get passes() {
      return behavior !== 'stalling' || performance.now() < this.loadBegan + 1000;
    }
    private begin(load: Load) {
      this.tell({ type: 'ready', stream: load.stream });
      this.loadBegan = performance.now();
      if (behavior === 'rude') {
        setTimeout(() => this.lane.onmessage?.({ data: 'text' }), 500);
        return;
      }
      this.load = serveLoad(load, (data) => {
        if (this.passes) this.lane.onmessage?.({ data });
      });
      if (load.direction === 'down') setTimeout(() => this.finish(load.stream), load.time_us / 1000);
    }
    private finish(stream: number) {
      this.load?.stop();
      this.load = undefined;
      this.tell({ type: 'end', stream });
    }
    private tell(control: Parameters<typeof encodeControl>[0]) {
      setTimeout(() => this.control.onmessage?.({ data: encodeControl(control) }), 10);
    }
    said(text: string) {
      const control = decodeControl(text);
      if (control.type === 'run') {
        const { stream } = control;
        if (behavior === 'refusing') return this.tell({ type: 'error', stream, code: 'limit', text: 'so many' });
        this.runs.set(stream, control);
        this.records.set(stream, []);
        this.tell({ type: 'ready', stream });
        if (control.direction === 'down') this.send(control);
      } else if (control.type === 'load') {
        const { stream } = control;
        if (behavior === 'refusing') this.tell({ type: 'error', stream, code: 'limit', text: 'so many' });
        else if (behavior === 'spent') this.tell({ type: 'error', code: 'bytes', text: 'enough for today' });
        else this.begin(control);
      } else if (control.type === 'sent') {
        const { stream } = control;
        if (this.load) return this.finish(stream);
        setTimeout(() => {
          const all = this.records.get(stream)!;
          for (let i = 0; i < all.length; i += 500)
            this.tell({ type: 'record', stream, arrivals: all.slice(i, i + 500) });
          this.tell({ type: 'end', stream });
        }, 2000);
      }
    }
    /** Each message takes 20 ms up and 30 ms down, or a second and a half. */
    got(data: ArrayBuffer) {
      const { stream, sequence, sent } = decodeMessage(data);
      const run = this.runs.get(stream)!;
      setTimeout(() => {
        const received = clock();
        if (behavior === 'lossy' && run.direction === 'up' && sequence % 10 === 3) return;
        if (sequence < run.messages) this.records.get(stream)!.push([sequence, sent, received]);
        if (run.direction === 'echo') {
          const echo = { type: 'echo', stream, sequence, sent, received, echoed: received } as const;
          this.deliver(encodeMessage(echo, 0).buffer);
        }
      }, 20);
    }
    private deliver(data: ArrayBuffer, later = 0) {
      setTimeout(() => this.quality.onmessage?.({ data }), (behavior === 'far' ? 1500 : 30) + later);
    }
    private send({ stream, messages, interval_us, size }: Run) {
      for (let sequence = 0; sequence < messages + tail; sequence++) {
        if (behavior === 'lossy' && (sequence % 10 === 7 || sequence % 10 === 8)) continue;
        const later = behavior === 'far' && sequence === messages - 1 ? 3000 : 0;
        setTimeout(
          () => this.deliver(encodeMessage({ type: 'probe', stream, sequence, sent: clock() }, size).buffer, later),
          (sequence * interval_us) / 1000,
        );
      }
      setTimeout(
        () => {
          this.tell({ type: 'sent', stream });
          this.tell({ type: 'end', stream });
        },
        ((messages + tail) * interval_us) / 1000,
      );
    }
  }
  vi.stubGlobal('RTCPeerConnection', Peer);
  return { closed: () => closed };
}
