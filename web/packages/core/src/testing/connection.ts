/** Peer connections and data channels that a test moves by hand. */

/** What another side says of a link. */
export const description = [
  'v=0',
  'o=- 4611731400430051336 2 IN IP4 127.0.0.1',
  's=-',
  't=0 0',
  'm=application 9 UDP/DTLS/SCTP webrtc-datachannel',
  'c=IN IP4 0.0.0.0',
  'a=ice-ufrag:abcd',
  'a=ice-pwd:0123456789abcdefABCDEF',
  `a=fingerprint:sha-256 ${new Array(32).fill('A5').join(':')}`,
  'a=setup:actpass',
  'a=mid:0',
  '',
].join('\r\n');

export class FakeChannel {
  readyState: RTCDataChannelState = 'connecting';
  binaryType = 'blob';
  bufferedAmount = 0;
  bufferedAmountLowThreshold = 0;
  onopen: (() => void) | null = null;
  onclose: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onbufferedamountlow: (() => void) | null = null;
  readonly sent: Uint8Array[] = [];
  readonly label: string;
  readonly ordered: boolean;

  constructor(label: string, ordered: boolean) {
    this.label = label;
    this.ordered = ordered;
  }

  send(message: Uint8Array): void {
    if (this.readyState !== 'open') throw new Error('InvalidStateError');
    this.sent.push(message.slice());
    this.bufferedAmount += message.length;
  }

  close(): void {
    this.readyState = 'closed';
  }

  open(): void {
    this.readyState = 'open';
    this.onopen?.();
  }

  say(...bytes: number[]): void {
    this.onmessage?.({ data: new Uint8Array(bytes).buffer });
  }

  drainTo(amount: number): void {
    const before = this.bufferedAmount;
    this.bufferedAmount = amount;
    if (before > this.bufferedAmountLowThreshold && amount <= this.bufferedAmountLowThreshold) {
      this.onbufferedamountlow?.();
    }
  }
}

type Stat = { id: string; type: string } & Record<string, unknown>;

export class FakeConnection {
  connectionState: RTCPeerConnectionState = 'new';
  iceConnectionState: RTCIceConnectionState = 'new';
  localDescription: { type: string; sdp: string } | null = null;
  remoteDescription: { type: string; sdp: string } | null = null;
  onicecandidate: ((event: { candidate: object | null }) => void) | null = null;
  ondatachannel: ((event: { channel: FakeChannel }) => void) | null = null;
  onconnectionstatechange: (() => void) | null = null;
  readonly channels: FakeChannel[] = [];
  readonly candidates: string[] = [];
  stats: Stat[] = [];
  closed = false;
  readonly configuration: RTCConfiguration;

  constructor(configuration: RTCConfiguration = {}) {
    this.configuration = configuration;
  }

  createDataChannel(label: string, { ordered = true }: RTCDataChannelInit = {}): FakeChannel {
    const channel = new FakeChannel(label, ordered);
    this.channels.push(channel);
    return channel;
  }

  async createOffer(): Promise<object> {
    return { type: 'offer', sdp: 'v=0 offer' };
  }

  async createAnswer(): Promise<object> {
    return { type: 'answer', sdp: 'v=0 answer' };
  }

  async setLocalDescription(description: { type: string; sdp: string }): Promise<void> {
    this.localDescription = description;
  }

  async setRemoteDescription(description: { type: string; sdp: string }): Promise<void> {
    if (description.sdp.includes('a=mid:bad')) throw new Error('InvalidAccessError');
    this.remoteDescription = description;
  }

  async addIceCandidate({ candidate }: { candidate: string }): Promise<void> {
    this.candidates.push(candidate);
  }

  async getStats(): Promise<Map<string, Stat>> {
    return new Map(this.stats.map((stat) => [stat.id, stat]));
  }

  close(): void {
    this.closed = true;
    this.connectionState = 'closed';
  }

  /** A channel that the other side made. */
  incoming(label: string, open = true): FakeChannel {
    const channel = new FakeChannel(label, label === 'lw.control');
    if (open) channel.readyState = 'open';
    this.channels.push(channel);
    this.ondatachannel?.({ channel });
    return channel;
  }

  candidate(text: string | null): void {
    this.onicecandidate?.({ candidate: text === null ? null : { candidate: text, sdpMid: '0', sdpMLineIndex: 0 } });
  }

  become(state: RTCPeerConnectionState): void {
    this.connectionState = state;
    this.onconnectionstatechange?.();
  }

  channel(label: string): FakeChannel {
    const found = this.channels.find((channel) => channel.label === label);
    if (!found) throw new Error(`no channel ${label}`);
    return found;
  }

  openAll(): void {
    for (const channel of this.channels) channel.open();
  }
}
