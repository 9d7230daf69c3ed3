/** Our path: the library's own links, uploads and downloads, and its check of every piece. */

import { createBackground } from '../../../packages/core/src/background/index.ts';
import { pageAlarm } from '../../../packages/core/src/browser/alarm.ts';
import { browserEnvironment } from '../../../packages/core/src/browser/environment.ts';
import { type Certificate, checkPiece } from '../../../packages/core/src/certificate/certificate.ts';
import { maxPieces, maxSegment, pieceSize } from '../../../packages/core/src/protocol/peer.ts';
import { createLimiter } from '../../../packages/core/src/transfer/segments.ts';
import { libraryLinks } from './links.ts';
import type { End, EndEvents, Setup } from './parent.ts';

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
  /** What each link has asked for, and is to ask for again. */
  const asked = new Map<number, { next: number; owed: number }>();

  const ask = (number: number, count: number) => {
    const own = asked.get(number) ?? { next: 0, owed: 0 };
    asked.set(number, own);
    const peer = links.peer(number);
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
      for (const number of links.numbers()) ask(number, 1);
    }
  };
  const again = alarm(
    () => askBehind(),
    () => {},
  );

  const links = libraryLinks(
    {
      signal: events.signal,
      ready: events.open,
      failed: events.failed,
      closed: (number, reason) => events.failed(`link ${number} closed: ${reason}`),
      piece: (_segment, piece) => content.subarray(piece * pieceSize, (piece + 1) * pieceSize),
      pieces: () => maxPieces,
      arrived(number, peer, download) {
        void limited(() => checkPiece(certificate, download.piece, download.data, crypto)).then((good) => {
          peer.supply.downloads.remove(download);
          if (!good) return events.failed(`piece ${download.piece} does not match`);
          events.got(download.length);
          if (setup.lane) return askBehind();
          const own = asked.get(number)!;
          if (++own.owed < setup.batch) return;
          own.owed -= setup.batch;
          ask(number, setup.batch);
        });
      },
    },
    background,
  );

  return {
    begin: (number) => links.offer(number),
    signal: (number, body) => links.signal(number, body),
    start(number) {
      if (setup.send) return;
      if (setup.lane) askBehind();
      else ask(number, setup.outstanding);
    },
  };
}
