import { type Assembly, assemble, createAssembly } from '../protocol/assembly.ts';
import { maxPieceMessages } from '../protocol/limits.ts';
import type { DataMessage } from '../protocol/peer.ts';

/** One piece asked of one peer. */
export interface Download extends Assembly {
  id: number;
  segment: string;
  piece: number;
  /** Bytes of the piece. */
  length: number;
  lane: 0 | 1;
  /** What the schedule asked for it for. */
  reason: string;
  sentUs: number;
  /** All bytes are in; the digest is being computed. */
  checking: boolean;
}

export interface Downloads {
  all: Map<number, Download>;
  add(d: Pick<Download, 'segment' | 'piece' | 'length' | 'lane' | 'reason' | 'sentUs'>): Download;
  remove(d: Download): void;
  /** It is of the foreground from now on. */
  promote(d: Download, nowUs: number): void;
  /** Ends it; data of it that is on the way is wasted, not unsolicited. */
  cancel(d: Download, nowMs: number): void;
  /** What a data message did; `taken back`: it is of the background, and canceled; `crumbs`: the piece comes in too many. */
  data(m: DataMessage, nowMs: number): Download | 'canceled' | 'taken back' | 'unsolicited' | 'malformed' | 'crumbs';
  /** Bytes of the foreground outstanding. */
  queued(): number;
  find(segment: string, piece: number): Download | undefined;
}

/** A canceled ID stays known, and unused, for so long. */
const canceledMs = 60_000;

/** What was asked of one peer, and the pieces as they come together. */
export const createDownloads = (): Downloads => {
  const all = new Map<number, Download>();
  /** When, and how many bytes of it may still come. */
  const canceled = new Map<number, { at: number; left: number; messages: number; lane: number }>();
  let lastId = 0;
  let queued = 0;
  const owe = (d: Pick<Download, 'lane' | 'length'>, more: number) => {
    if (!d.lane) queued += more * d.length;
  };
  const remove = (d: Download) => {
    if (all.delete(d.id) && !d.checking) owe(d, -1);
  };
  return {
    all,
    add(d) {
      do lastId = (lastId + 1) >>> 0;
      while (all.has(lastId) || canceled.has(lastId));
      const full: Download = {
        ...d,
        id: lastId,
        ...createAssembly(d.length),
        checking: false,
      };
      all.set(lastId, full);
      owe(d, 1);
      return full;
    },
    remove,
    promote(d, nowUs) {
      d.lane = 0;
      d.sentUs = nowUs;
      owe(d, 1);
    },
    cancel(d, nowMs) {
      remove(d);
      if (d.checking) return;
      for (const [id, { at }] of canceled) {
        if (nowMs - at < canceledMs) break;
        canceled.delete(id);
      }
      canceled.set(d.id, { at: nowMs, left: d.length - d.received, messages: d.spans.length, lane: d.lane });
    },
    data(m, nowMs) {
      const d = all.get(m.request);
      if (!d) {
        const c = canceled.get(m.request);
        if (!c || nowMs - c.at >= canceledMs) return 'unsolicited';
        c.left -= m.payload.length;
        return c.left < 0 || ++c.messages > maxPieceMessages ? 'unsolicited' : c.lane ? 'taken back' : 'canceled';
      }
      const why = d.checking ? 'malformed' : assemble(d, m);
      if (why) return why;
      if (d.received === d.length) {
        d.checking = true;
        owe(d, -1);
      }
      return d;
    },
    queued: () => queued,
    find(segment, piece) {
      for (const d of all.values()) if (d.segment === segment && d.piece === piece) return d;
      return undefined;
    },
  };
};
