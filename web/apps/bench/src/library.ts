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
  const { clock, crypto } = browserEnvironment();
  const alarm = pageAlarm(clock);
  const background = setup.law ? createBackground({ clock, alarm }) : undefined;
  const content = new Uint8Array(await (await fetch('/content')).arrayBuffer());
  const certificate = await certify(content);
  const limited = createLimiter(digests);
  /** What each link has asked for, and is to ask for again. */
  const asked = new Map<number, { next: number; owed: number }>();

  /** The next piece to be asked for over a link. */
  const next = (number: number) => {
    const own = asked.get(number) ?? { next: 0, owed: 0 };
    asked.set(number, own);
    const peer = links.peer(number);
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
  };

  const request = (number: number, list: { id: number; piece: number }[]) => {
    for (let i = 0; i < list.length; i += setup.batch) {
      const requests = list.slice(i, i + setup.batch);
      links.peer(number).send({ type: 'request', segment, lane: setup.lane, requests });
    }
  };
  const ask = (number: number, count: number) =>
    request(
      number,
      Array.from({ length: count }, () => next(number)),
    );

  /** Asks for pieces of the background as the window has room for them; what it has room for at once travels together, as in the library. */
  const askBehind = () => {
    const lists = new Map([...links.numbers()].map((number) => [number, [] as { id: number; piece: number }[]]));
    let may = background!.mayRequest();
    for (; may === true; may = background!.mayRequest()) for (const [number, list] of lists) list.push(next(number));
    for (const [number, list] of lists) request(number, list);
    if (Number.isFinite(may)) again.set(may);
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
