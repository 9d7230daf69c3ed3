/** A link as the library plans it, with the messages of both lanes in the open: the bench has no swarm around it. */

import type { BackgroundLink } from '../../../../packages/core/src/background/index.ts';
import { ackLabel, agree, controlLabel, dataLabels, defaultPlan } from '../../../../packages/core/src/link/plan.ts';
import type { Signal } from './parent.ts';

export interface LinkEvents {
  signal(signal: Signal): void;
  open(link: PageLink): void;
  control(message: Uint8Array): void;
  ack(message: Uint8Array): void;
  data(message: Uint8Array): void;
  failed(why: string): void;
}

export interface PageLink extends BackgroundLink {
  offer(): void;
  signal(signal: Signal): void;
  sendControl(message: Uint8Array): void;
}

type Bytes = Uint8Array<ArrayBuffer>;

export function createPageLink(events: LinkEvents): PageLink {
  const connection = new RTCPeerConnection();
  const channels = new Map<string, RTCDataChannel>();
  let labels: string[] = [];
  let data: RTCDataChannel[] = [];
  let chain: Promise<unknown> = Promise.resolve();
  let maxMessage = defaultPlan.message;

  const run = (work: () => Promise<unknown>) => {
    chain = chain.then(work).catch((error) => events.failed(String(error)));
  };

  const check = () => {
    if (data.length || !labels.length || labels.some((label) => channels.get(label)?.readyState !== 'open')) return;
    data = labels.filter((label) => dataLabels(defaultPlan.data).includes(label)).map((label) => channels.get(label)!);
    events.open(link);
  };

  const adopt = (channel: RTCDataChannel) => {
    const { label } = channel;
    const handle = label === controlLabel ? events.control : label === ackLabel ? events.ack : events.data;
    channels.set(label, channel);
    channel.binaryType = 'arraybuffer';
    channel.onmessage = (event: MessageEvent<ArrayBuffer>) => handle(new Uint8Array(event.data));
    channel.onclose = () => events.failed(`${label} closed`);
    channel.onopen = check;
    check();
  };

  const describe = async (kind: 'offer' | 'answer') => {
    await connection.setLocalDescription(
      kind === 'offer' ? await connection.createOffer() : await connection.createAnswer(),
    );
    events.signal({ description: { SDP: connection.localDescription!.sdp, Plan: defaultPlan } });
  };

  const take = async ({ description, candidate }: Signal) => {
    if (description) {
      const offered = connection.signalingState === 'stable';
      const plan = agree(description.Plan, defaultPlan);
      if (!plan) throw new Error('the other end has another plan');
      maxMessage = plan.message;
      labels = [controlLabel, ackLabel, ...dataLabels(plan.data)];
      await connection.setRemoteDescription({ type: offered ? 'offer' : 'answer', sdp: description.SDP });
      if (offered) await describe('answer');
      check();
    } else if (candidate && !candidate.End) {
      await connection.addIceCandidate({
        candidate: candidate.Candidate,
        sdpMid: candidate.Mid || '0',
        sdpMLineIndex: candidate.Line,
      });
    }
  };

  connection.ondatachannel = ({ channel }) => adopt(channel);
  connection.onicecandidate = ({ candidate }) => {
    const found = candidate?.candidate
      ? { Candidate: candidate.candidate, Mid: candidate.sdpMid ?? '', Line: candidate.sdpMLineIndex ?? 0, End: false }
      : { Candidate: '', Mid: '', Line: 0, End: true };
    run(async () => events.signal({ candidate: found }));
  };

  /** The channel in whose buffer the least waits. */
  const emptiest = () => data.reduce((a, b) => (b.bufferedAmount < a.bufferedAmount ? b : a));
  const send = (channel: RTCDataChannel | undefined, message: Uint8Array): boolean => {
    if (channel?.readyState !== 'open') return false;
    channel.send(message as Bytes);
    return true;
  };

  const link: PageLink = {
    get maxMessage() {
      return maxMessage;
    },
    waiting: () => data.reduce((sum, channel) => sum + channel.bufferedAmount, 0),
    sendBackground: (message) => send(emptiest(), message),
    sendAck: (message) => void send(channels.get(ackLabel), message),
    sendControl: (message) => void send(channels.get(controlLabel), message),
    offer() {
      adopt(connection.createDataChannel(controlLabel));
      for (const label of [ackLabel, ...dataLabels(defaultPlan.data)]) {
        adopt(connection.createDataChannel(label, { ordered: false }));
      }
      run(() => describe('offer'));
    },
    signal: (signal) => run(() => take(signal)),
  };
  return link;
}
