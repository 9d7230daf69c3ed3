/** What a page has in a simulation where a browser has a network: TCP to the page's server, and connections to peers. */

import type { LinkCloseReason, LinkPath, PeerLink, PeerRole } from '../ports.ts';
import { encode } from '../protocol/peer.ts';
import { description } from '../testing/connection.ts';
import type { Network } from './world.ts';

const packet = 1_460;
/** What is given to the line at once. */
const chunk = 5 * packet;

/** The server's side of a transfer. */
interface Transfer {
  left: number;
  arrived(bytes: number): void;
}

/**
 * A connection of the page to its server, which carries several responses at once. Its window begins with ten packets and
 * doubles with each round trip until path and queue are full, as TCP's does; nothing is lost.
 */
export class ServerConnection {
  private window = 10 * packet;
  private inFlight = 0;
  private readonly transfers: Transfer[] = [];

  constructor(
    private readonly network: Network,
    private readonly home: string,
    /** What path and queue hold, bytes. */
    private readonly most: number,
  ) {}

  /** A response of so many bytes, for which the server takes a while. */
  fetch(bytes: number, serverMs: number, signal?: AbortSignal, onProgress?: (loaded: number) => void): Promise<void> {
    const { world, delayMs } = this.network;
    return new Promise((resolve, reject) => {
      let loaded = 0;
      const transfer: Transfer = {
        left: bytes,
        arrived(n) {
          loaded += n;
          onProgress?.(loaded);
          if (loaded === bytes) resolve();
        },
      };
      signal?.addEventListener('abort', () => {
        transfer.left = 0;
        transfer.arrived = () => {};
        reject(new Error('AbortError'));
      });
      world.setTimer(() => {
        this.transfers.push(transfer);
        this.pump();
      }, delayMs + serverMs);
    });
  }

  private pump(): void {
    const { network, transfers } = this;
    while (transfers.length && this.inFlight < this.window) {
      const next = transfers.shift()!;
      const bytes = Math.min(chunk, next.left);
      if (!bytes) continue;
      next.left -= bytes;
      if (next.left) transfers.push(next);
      this.inFlight += bytes;
      const acknowledged = () => {
        this.inFlight -= bytes;
        this.window = Math.min(this.most, this.window + bytes);
        this.pump();
      };
      network.send('origin', this.home, bytes * 1.04, nothing, () => {
        next.arrived(bytes);
        network.world.setTimer(acknowledged, network.delayMs);
      });
    }
  }
}

const nothing = () => {};

/** One end of a link, with no more in flight than the path and half as much in its queue hold. */
class End implements PeerLink {
  readonly maxMessage = 16_384;
  other!: End;
  open = true;
  onControl?: (message: Uint8Array) => void;
  onData?: (message: Uint8Array) => void;
  onAck?: (message: Uint8Array) => void;
  onDrain?: () => void;
  onClose?: (reason: LinkCloseReason) => void;
  private inFlight = 0;
  private full = false;

  constructor(
    private readonly network: Network,
    readonly self: string,
    readonly peer: string,
    readonly role: PeerRole,
  ) {}

  path(): LinkPath {
    return 'direct';
  }

  private get bound(): number {
    const { network } = this;
    const rate = Math.min(network.lineOf(this.self).up, network.lineOf(this.peer).down);
    return Math.max(32_768, Math.min((rate * 2.8 * network.delayMs) / 1_000, 786_432));
  }

  private carry(message: Uint8Array, left: () => void, heard: (end: End) => void, ahead = false): void {
    this.network.send(
      this.self,
      this.peer,
      message.length + 60 * Math.ceil(message.length / 1_156),
      nothing,
      () => {
        left();
        if (this.other.open) heard(this.other);
      },
      ahead,
    );
  }

  sendControl(message: Uint8Array): void {
    if (this.open) this.carry(message, nothing, (end) => end.onControl?.(message), true);
  }

  sendData(message: Uint8Array): boolean {
    if (!this.open) return true;
    if (this.inFlight + message.length > this.bound) {
      this.full = true;
      return false;
    }
    return this.sendBackground(message);
  }

  sendBackground(message: Uint8Array): boolean {
    if (!this.open) return false;
    this.inFlight += message.length;
    const left = () => {
      this.inFlight -= message.length;
      if (!this.full || this.inFlight > (this.bound * 3) / 4) return;
      this.full = false;
      if (this.open) this.onDrain?.();
    };
    this.carry(message, left, (end) => end.onData?.(message));
    return true;
  }

  sendAck(message: Uint8Array): void {
    if (this.open) this.carry(message, nothing, (end) => end.onAck?.(message));
  }

  controlRoom(): boolean {
    return true;
  }

  waiting(): number {
    return this.inFlight;
  }

  close(_reason: LinkCloseReason, bye?: number): void {
    if (!this.open) return;
    if (bye !== undefined) this.sendControl(encode({ type: 'bye', reason: bye }));
    this.open = false;
    const { other, network } = this;
    network.world.setTimer(() => {
      if (!other.open) return;
      other.open = false;
      other.onClose?.('closed');
    }, network.delayMs);
  }
}

type Listener<T> = ((event: T) => void) | null;

/** A data channel: what is written goes by the end of a link. */
class Channel {
  readyState: RTCDataChannelState = 'connecting';
  binaryType = 'blob';
  bufferedAmountLowThreshold = 0;
  onopen: Listener<void> = null;
  onclose: Listener<void> = null;
  onmessage: Listener<{ data: ArrayBuffer }> = null;
  onbufferedamountlow: Listener<void> = null;
  end?: End;

  constructor(readonly label: string) {}

  get bufferedAmount(): number {
    return this.label.startsWith('lw.data') ? (this.end?.waiting() ?? 0) : 0;
  }

  send(message: Uint8Array): void {
    if (this.readyState !== 'open' || !this.end) throw new Error('InvalidStateError');
    const copy = message.slice();
    if (this.label === 'lw.control') this.end.sendControl(copy);
    else if (this.label === 'lw.ack') this.end.sendAck(copy);
    else this.end.sendBackground(copy);
  }

  hear(message: Uint8Array): void {
    this.onmessage?.({ data: message.slice().buffer });
  }

  close(): void {
    this.readyState = 'closed';
  }
}

/** Where a connection may lead. */
export interface Reachable {
  readonly id: string;
  readonly role: PeerRole;
  addLink(link: PeerLink): void;
}

/** What a peer signals: its ID is in place of the name that ICE has for it. */
export const describe = (id: string): string => description.replace('abcd', id).replace('actpass', 'active');

/** A connection that the page offers. It opens two round trips after the answer, where it opens. */
export class Connection {
  connectionState: RTCPeerConnectionState = 'new';
  localDescription: { type: string; sdp: string } | null = null;
  onicecandidate: unknown = null;
  ondatachannel: unknown = null;
  onconnectionstatechange: Listener<void> = null;
  private readonly channels: Channel[] = [];
  private end?: End;

  constructor(
    private readonly network: Network,
    private readonly home: string,
    private readonly peers: Reachable[],
    private readonly opens: boolean,
  ) {}

  createDataChannel(label: string): Channel {
    const channel = new Channel(label);
    this.channels.push(channel);
    return channel;
  }

  async createOffer(): Promise<object> {
    return { type: 'offer', sdp: description };
  }

  async setLocalDescription(local: { type: string; sdp: string }): Promise<void> {
    this.localDescription = local;
  }

  async setRemoteDescription({ sdp }: { sdp: string }): Promise<void> {
    const peer = this.peers.find(({ id }) => sdp.includes(`a=ice-ufrag:${id}`));
    const { world, delayMs } = this.network;
    if (peer && this.opens) world.setTimer(() => this.connect(peer), 4 * delayMs);
  }

  private connect(peer: Reachable): void {
    if (this.connectionState === 'closed') return;
    const mine = new End(this.network, this.home, peer.id, peer.role);
    const theirs = new End(this.network, peer.id, this.home, 'viewer');
    mine.other = theirs;
    theirs.other = mine;
    this.end = mine;
    const to = (label: string) => this.channels.find((channel) => channel.label.startsWith(label))!;
    mine.onControl = (message) => to('lw.control').hear(message);
    mine.onData = (message) => to('lw.data').hear(message);
    mine.onAck = (message) => to('lw.ack').hear(message);
    mine.onClose = () => {
      for (const channel of this.channels) channel.onclose?.();
    };
    this.connectionState = 'connected';
    this.onconnectionstatechange?.();
    for (const channel of this.channels) {
      channel.end = mine;
      channel.readyState = 'open';
      channel.onopen?.();
    }
    peer.addLink(theirs);
  }

  async addIceCandidate(): Promise<void> {}

  async getStats(): Promise<Map<string, object>> {
    return new Map();
  }

  close(): void {
    this.connectionState = 'closed';
    this.end?.close('closed');
  }
}
