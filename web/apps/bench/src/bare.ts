/** The baseline: data channels with nothing around them, filled as every flow-control example does it. */

import type { SignalBody } from '../../../packages/core/src/session/messages.ts';
import { type End, type EndEvents, noPlan, type Setup } from './parent.ts';

interface Bare {
  connection: RTCPeerConnection;
  channels: RTCDataChannel[];
}

export function bareEnd(setup: Setup, events: EndEvents): End {
  const links = new Map<number, Bare>();
  const message = new Uint8Array(setup.message);

  const pump = (channel: RTCDataChannel) => {
    while (channel.readyState === 'open' && channel.bufferedAmount <= setup.buffer) channel.send(message);
  };

  const adopt = (link: number, { channels }: Bare, channel: RTCDataChannel) => {
    channel.binaryType = 'arraybuffer';
    channel.bufferedAmountLowThreshold = setup.buffer / 2;
    channel.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => events.got(data.byteLength);
    const opened = () => {
      channels.push(channel);
      if (channels.length === setup.channels) events.open(link);
    };
    if (channel.readyState === 'open') opened();
    else channel.onopen = opened;
  };

  const create = (link: number): Bare => {
    const bare: Bare = { connection: new RTCPeerConnection(), channels: [] };
    bare.connection.ondatachannel = ({ channel }) => adopt(link, bare, channel);
    links.set(link, bare);
    return bare;
  };

  /** Sets the local description, and signals it with all its candidates. */
  const describe = async (link: number, { connection }: Bare, kind: 'offer' | 'answer') => {
    const gathered = new Promise<void>((resolve) => {
      connection.onicegatheringstatechange = () => {
        if (connection.iceGatheringState === 'complete') resolve();
      };
    });
    await connection.setLocalDescription();
    await gathered;
    events.signal(link, { kind, sdp: connection.localDescription!.sdp, plan: noPlan });
  };

  const take = async (link: number, body: SignalBody) => {
    if (body.kind !== 'offer' && body.kind !== 'answer') throw new Error(`a bare end got ${body.kind}`);
    const bare = links.get(link) ?? create(link);
    await bare.connection.setRemoteDescription({ type: body.kind, sdp: body.sdp });
    if (body.kind === 'offer') await describe(link, bare, 'answer');
  };

  const watched = (work: Promise<void>) => void work.catch((error) => events.failed(String(error)));

  return {
    begin(link) {
      const bare = create(link);
      for (let i = 0; i < setup.channels; i++) adopt(link, bare, bare.connection.createDataChannel(String(i)));
      watched(describe(link, bare, 'offer'));
    },
    signal: (link, body) => watched(take(link, body)),
    start(link) {
      if (!setup.send) return;
      for (const channel of links.get(link)?.channels ?? []) {
        channel.onbufferedamountlow = () => pump(channel);
        pump(channel);
      }
    },
  };
}
