/** The baseline: data channels with nothing around them. */

import type { SignalBody } from '../../../packages/core/src/session/messages.ts';
import { type End, type EndEvents, noPlan, type Setup } from './parent.ts';

export interface BareEvents {
  signal(link: number, body: SignalBody): void;
  /** Its channels are open. */
  open(link: number): void;
  message(link: number, channel: number, data: ArrayBuffer): void;
  failed(why: string): void;
}

export interface BareLinks {
  begin(link: number): void;
  signal(link: number, body: SignalBody): void;
  /** Its channels, in the order in which the offerer made them. */
  channels(link: number): RTCDataChannel[];
  drop(link: number): void;
}

interface Bare {
  connection: RTCPeerConnection;
  channels: RTCDataChannel[];
  open: number;
}

export function bareLinks(count: number, events: BareEvents): BareLinks {
  const links = new Map<number, Bare>();

  const adopt = (link: number, bare: Bare, channel: RTCDataChannel) => {
    const number = Number(channel.label);
    bare.channels[number] = channel;
    channel.binaryType = 'arraybuffer';
    channel.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => events.message(link, number, data);
    const opened = () => {
      if (++bare.open === count) events.open(link);
    };
    if (channel.readyState === 'open') opened();
    else channel.onopen = opened;
  };

  const create = (link: number): Bare => {
    const bare: Bare = { connection: new RTCPeerConnection(), channels: [], open: 0 };
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
      for (let i = 0; i < count; i++) adopt(link, bare, bare.connection.createDataChannel(String(i)));
      watched(describe(link, bare, 'offer'));
    },
    signal: (link, body) => watched(take(link, body)),
    channels: (link) => links.get(link)?.channels ?? [],
    drop(link) {
      links.get(link)?.connection.close();
      links.delete(link);
    },
  };
}

/** Fills its channels as every flow-control example does it. */
export function bareEnd(setup: Setup, events: EndEvents): End {
  const message = new Uint8Array(setup.message);
  const links = bareLinks(setup.channels, {
    ...events,
    message: (_link, _channel, data) => events.got(data.byteLength),
  });

  const pump = (channel: RTCDataChannel) => {
    while (channel.readyState === 'open' && channel.bufferedAmount <= setup.buffer) channel.send(message);
  };

  return {
    begin: links.begin,
    signal: links.signal,
    start(link) {
      if (!setup.send) return;
      for (const channel of links.channels(link)) {
        channel.bufferedAmountLowThreshold = setup.buffer / 2;
        channel.onbufferedamountlow = () => pump(channel);
        pump(channel);
      }
    },
  };
}
