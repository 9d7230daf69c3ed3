/** One end of links that are made, ended and asked for items as the bench says. */

import { browserEnvironment } from '../../../../packages/core/src/browser/environment.ts';
import { type Certificate, checkPiece } from '../../../../packages/core/src/certificate/certificate.ts';
import { pieceSize } from '../../../../packages/core/src/protocol/peer.ts';
import type { SignalBody } from '../../../../packages/core/src/session/messages.ts';
import { createLimiter } from '../../../../packages/core/src/transfer/segments.ts';
import { bareLinks } from '../bare.ts';
import { libraryLinks } from '../links.ts';
import { createFetcher } from './fetcher.ts';
import type { Job, Lane, Moment, Setup, Word } from './parent.ts';

export interface End {
  begin(link: number): void;
  signal(link: number, body: SignalBody): void;
  job(job: Job): void;
  drop(link: number): void;
}

/** As many digests at once as the library computes. */
const digests = 8;
/** Bytes of a request on a channel with nothing around it: how many are wanted. */
const requestBytes = 4;

const count = (bytes: number) => Math.ceil(bytes / pieceSize);
/** An item's segment: its size is in the name, so that an end that serves knows it. */
const named = (item: number, bytes: number) =>
  bytes.toString(16).padStart(8, '0') + item.toString(16).padStart(8, '0') + '0'.repeat(16);
const sizeOf = (segment: string) => Number.parseInt(segment.slice(0, 8), 16);

type Tell = (word: Word) => void;
const momentOf = (say: Tell) => (link: number, what: Moment) =>
  say({ type: 'moment', link, moment: { what, at: performance.timeOrigin + performance.now() } });

/** The library's links, its uploads and downloads, and its check of every piece. */
export async function oursEnd(say: Tell): Promise<End> {
  const { clock, crypto } = browserEnvironment();
  const content = new Uint8Array(await (await fetch('/content')).arrayBuffer());
  const limited = createLimiter(digests);
  const moment = momentOf(say);
  const failed = (why: string) => say({ type: 'failed', why });
  const piece = (bytes: number, i: number) => content.subarray(i * pieceSize, Math.min((i + 1) * pieceSize, bytes));
  const certificates = new Map<number, Certificate>();
  const certify = async (bytes: number) => {
    const all = new Uint8Array(32 * count(bytes));
    for (let i = 0; i < count(bytes); i++) all.set(await crypto.digest(piece(bytes, i)), 32 * i);
    certificates.set(bytes, { length: bytes, objectLength: bytes, digests: all } as Certificate);
  };
  /** Items on their way, by their segments. */
  const awaited = new Map<string, { lane: Lane; missing: number }>();

  const links = libraryLinks({
    signal: (link, body) => say({ type: 'signal', link, body }),
    opened: (link) => moment(link, 'open'),
    ready: (link) => moment(link, 'usable'),
    closed: () => {}, // the other end was told to, or the bench notices what does not come
    failed,
    piece: (segment, i) => piece(sizeOf(segment), i),
    pieces: (segment) => count(sizeOf(segment)),
    arrived(_link, peer, download) {
      const certificate = certificates.get(sizeOf(download.segment))!;
      void limited(() => checkPiece(certificate, download.piece, download.data, crypto)).then((good) => {
        peer.supply.downloads.remove(download);
        if (!good) return failed(`piece ${download.piece} does not match`);
        const item = awaited.get(download.segment)!;
        if (--item.missing > 0) return;
        awaited.delete(download.segment);
        fetcher.arrived(item.lane);
      });
    },
  });

  const ask = (lane: Lane, item: number, bytes: number) => {
    const segment = named(item, bytes);
    const peer = links.peer(lane.link);
    awaited.set(segment, { lane, missing: count(bytes) });
    const requests = Array.from({ length: count(bytes) }, (_, i) => {
      const length = piece(bytes, i).length;
      const { id } = peer.supply.downloads.add({
        segment,
        piece: i,
        length,
        lane: 0,
        reason: 'bench',
        sentUs: Math.floor(clock.now() * 1000),
      });
      return { id, piece: i };
    });
    peer.send({ type: 'request', segment, lane: 0, requests });
  };
  const fetcher = createFetcher(
    () => clock.now(),
    ask,
    (ms) => say({ type: 'done', done: { ms } }),
  );

  return {
    begin(link) {
      moment(link, 'begun');
      links.offer(link);
    },
    signal(link, body) {
      if (body.kind === 'answer') moment(link, 'answered');
      links.signal(link, body);
    },
    async job(job) {
      const rest = job.bytes % job.item;
      for (const size of rest ? [job.item, rest] : [job.item]) if (!certificates.has(size)) await certify(size);
      fetcher.begin(job);
    },
    drop: (link) => links.drop(link),
  };
}

/** Data channels with nothing around them: a request is answered with as many bytes, in order. */
export function plainEnd(setup: Setup, say: Tell): End {
  const moment = momentOf(say);
  const message = new Uint8Array(setup.message);
  /** Bytes that are still to come of what a lane has asked for, and still to be sent of what it was asked for. */
  const waiting = new Map<string, number[]>();
  const owed = new Map<string, number>();
  const key = ({ link, channel }: Lane) => `${link} ${channel}`;

  const send = (lane: Lane, channel: RTCDataChannel) => {
    let left = owed.get(key(lane)) ?? 0;
    while (left > 0 && channel.readyState === 'open' && channel.bufferedAmount <= setup.buffer) {
      const size = Math.min(left, message.length);
      channel.send(message.subarray(0, size));
      left -= size;
    }
    owed.set(key(lane), left);
  };

  const came = (lane: Lane, bytes: number) => {
    const list = waiting.get(key(lane))!;
    let left = bytes;
    let whole = 0;
    while (left > 0 && list.length > 0) {
      const part = Math.min(left, list[0]!);
      left -= part;
      list[0]! -= part;
      if (list[0] === 0) {
        list.shift();
        whole++;
      }
    }
    while (whole-- > 0) fetcher.arrived(lane);
  };

  const links = bareLinks(setup.channels, {
    signal: (link, body) => say({ type: 'signal', link, body }),
    failed: (why) => say({ type: 'failed', why }),
    open(link) {
      links.channels(link).forEach((channel, i) => {
        channel.bufferedAmountLowThreshold = setup.buffer / 2;
        channel.onbufferedamountlow = () => send({ link, channel: i }, channel);
      });
      moment(link, 'open');
      moment(link, 'usable');
    },
    message(link, channel, data) {
      const lane = { link, channel };
      if (waiting.has(key(lane))) return came(lane, data.byteLength);
      if (data.byteLength !== requestBytes)
        return say({ type: 'failed', why: `a request of ${data.byteLength} bytes` });
      owed.set(key(lane), (owed.get(key(lane)) ?? 0) + new DataView(data).getUint32(0));
      send(lane, links.channels(link)[channel]!);
    },
  });

  const fetcher = createFetcher(
    () => performance.now(),
    (lane, _item, bytes) => {
      const request = new DataView(new ArrayBuffer(requestBytes));
      request.setUint32(0, bytes);
      waiting.set(key(lane), [...(waiting.get(key(lane)) ?? []), bytes]);
      links.channels(lane.link)[lane.channel]!.send(request.buffer as ArrayBuffer);
    },
    (ms) => say({ type: 'done', done: { ms } }),
  );

  return {
    begin(link) {
      moment(link, 'begun');
      links.begin(link);
    },
    signal(link, body) {
      if (body.kind === 'answer') moment(link, 'answered');
      links.signal(link, body);
    },
    job: (job) => fetcher.begin(job),
    drop: (link) => links.drop(link),
  };
}
