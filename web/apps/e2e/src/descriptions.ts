/**
 * Stands for `webrtc-polyfill` where `bittorrent-tracker` runs in Node: that package loads a native module which is not built
 * here, and what a tracker passes on are descriptions alone. Connections describe themselves and never open.
 */
interface Description {
  type: string;
  sdp: string;
}

let count = 0;

/** Line ends, quotes, a backslash, a letter beyond ASCII: what has to come through a tracker as it is. */
function describe(type: string): Description {
  count++;
  return { type, sdp: `v=0\r\no=- ${count} 2 IN IP4 127.0.0.1\r\ns="\\é" ${type}\r\n` };
}

export class RTCPeerConnection {
  readonly iceConnectionState = 'new';
  readonly connectionState = 'new';
  readonly signalingState = 'stable';
  readonly iceGatheringState = 'complete';
  localDescription: Description | null = null;
  remoteDescription: Description | null = null;
  onicecandidate?: (event: { candidate: null }) => void;

  createDataChannel(label: string): unknown {
    return { label, readyState: 'connecting', close() {} };
  }

  async createOffer(): Promise<Description> {
    return describe('offer');
  }

  async createAnswer(): Promise<Description> {
    return describe('answer');
  }

  async setLocalDescription(description: Description): Promise<void> {
    this.localDescription = description;
    queueMicrotask(() => this.onicecandidate?.({ candidate: null }));
  }

  async setRemoteDescription(description: Description): Promise<void> {
    this.remoteDescription = description;
  }

  close(): void {}
}

export class RTCSessionDescription {
  readonly type: string;
  readonly sdp: string;

  constructor({ type, sdp }: Description) {
    this.type = type;
    this.sdp = sdp;
  }
}

export class RTCIceCandidate {}
