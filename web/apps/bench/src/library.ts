/** Our path: the library's own links, uploads and downloads, and its check of every piece. */

import { createBackground } from '../../../packages/core/src/background/index.ts';
import { pageAlarm } from '../../../packages/core/src/browser/alarm.ts';
import { browserEnvironment } from '../../../packages/core/src/browser/environment.ts';
import { type Certificate, checkPiece } from '../../../packages/core/src/certificate/certificate.ts';
import { inspection } from '../../../packages/core/src/link/inspect.ts';
import { createLink, type Link } from '../../../packages/core/src/link/link.ts';
import { maxPieces, maxSegment, pieceSize } from '../../../packages/core/src/protocol/peer.ts';
import type { SignalBody } from '../../../packages/core/src/session/messages.ts';
import { createPeer, type PeerEvents, type PeerHost } from '../../../packages/core/src/transfer/peer.ts';
import type { Peer } from '../../../packages/core/src/transfer/ports.ts';
import { createLimiter } from '../../../packages/core/src/transfer/segments.ts';
import type { End, EndEvents, Setup } from './parent.ts';

/** Both ends have the same name: there is no other peer. */
const nobody = '0'.repeat(32);
const segment = `01${'0'.repeat(30)}`;
/** As many digests at once as the library computes. */
const digests = 8;

/** Length and digests of the content, which are all that a check of pieces needs of a certificate. */
async function certify(content: Uint8Array): Promise<Certificate> {
  const { crypto } = browserEnvironment();
  const all = new Uint8Array(32 * maxPieces);
  for (let i = 0; i < maxPieces; i++) {
    all.set(await crypto.digest(content.subarray(i * pieceSize, (i + 1) * pieceSize)), 32 * i);
  }
  return { length: maxSegment, objectLength: maxSegment, digests: all } as Certificate;
}

export async function libraryEnd(setup: Setup, events: EndEvents): Promise<End> {
  const { clock, crypto, random } = browserEnvironment();
  const alarm = pageAlarm();
  const background = setup.law ? createBackground({ clock, random, alarm }) : undefined;
  const content = new Uint8Array(await (await fetch('/content')).arrayBuffer());
  const certificate = await certify(content);
  const limited = createLimiter(digests);
  const links = new Map<number, { link: Link; peer?: Peer; next: number; owed: number }>();

  const ask = (number: number, count: number) => {
    const own = links.get(number)!;
    const peer = own.peer!;
    for (let left = count; left > 0; left -= setup.batch) {
      const requests = Array.from({ length: Math.min(setup.batch, left) }, () => {
        const piece = own.next++ % maxPieces;
        const { id } = peer.supply.downloads.add({
          segment,
          piece,
          length: pieceSize,
          lane: setup.lane,
          reason: 'bench',
          sentUs: Math.floor(clock.now() * 1000),
        });
        if (setup.lane) peer.lane!.requested(pieceSize);
        return { id, piece };
      });
      peer.send({ type: 'request', segment, lane: setup.lane, requests });
    }
  };

  /** Asks for pieces of the background as the window has room for them. */
  const askBehind = () => {
    for (;;) {
      const may = background!.mayRequest();
      if (may !== true) {
        if (Number.isFinite(may)) again.set(may);
        return;
      }
      for (const number of links.keys()) ask(number, 1);
    }
  };
  const again = alarm(
    () => askBehind(),
    () => {},
  );

  const host = (number: number): PeerHost => ({
    clock,
    self: () => nobody,
    swarm: nobody,
    background: background && (() => background),
    uploads: {
      piece: (_segment, piece) => content.subarray(piece * pieceSize, (piece + 1) * pieceSize),
      pieces: () => maxPieces,
      allowed: () => true,
      queued: () => 0,
    },
    greeting: { announcement: () => undefined, held: () => [], flags: () => 0 },
    silence: { drifted: () => false },
    stats: {
      count(name) {
        if (/^rejected|^malformed/.test(name)) events.failed(`link ${number}: ${name}`);
      },
      wasted: () => {},
    },
    verification: {
      piece(peer, download) {
        void limited(() => checkPiece(certificate, download.piece, download.data, crypto)).then((good) => {
          peer.supply.downloads.remove(download);
          if (!good) return events.failed(`piece ${download.piece} does not match`);
          events.got(download.length);
          if (setup.lane) return askBehind();
          const own = links.get(number)!;
          if (++own.owed < setup.batch) return;
          own.owed -= setup.batch;
          ask(number, setup.batch);
        });
      },
      asked: () => {},
      certificate: () => {},
      none: () => {},
    },
  });
  const fate = (number: number): PeerEvents => ({
    ready: () => events.open(number),
    sent: () => {},
    closed: (_peer, reason) => events.failed(`link ${number} closed: ${reason}`),
    changed: () => {},
  });

  const create = (number: number): Link => {
    const link = createLink({
      id: String(number),
      peer: nobody,
      role: 'viewer',
      connection: new RTCPeerConnection(),
      clock,
      gated: Promise.resolve(false),
      asks: false,
      udpServers: false,
      relayOnly: false,
      inspection: () => inspection,
      greeting: () => undefined,
      signal: (body) => events.signal(number, body),
      opened(open) {
        links.get(number)!.peer = createPeer(open, host(number), fate(number));
      },
      failed: (_link, { fail }) => events.failed(`link ${number}: ${fail}`),
      closed: (_link, reason) => events.failed(`link ${number} closed: ${reason}`),
    });
    links.set(number, { link, next: 0, owed: 0 });
    return link;
  };

  return {
    begin: (number) => create(number).offer(),
    signal(number, body: SignalBody) {
      if (body.kind === 'offer') create(number).answer(body.sdp, body.plan);
      else links.get(number)?.link.receive(body);
    },
    start(number) {
      if (setup.send) return;
      if (setup.lane) askBehind();
      else ask(number, setup.outstanding);
    },
  };
}
