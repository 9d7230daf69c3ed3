/** What one peer brings: what is asked of it, how quick it is, and how long it is put up with. */
import type { Clock } from '../ports.ts';
import {
  byePolicy,
  type DataMessage,
  laneBackground,
  laneForeground,
  Malformed,
  type Message,
  rejectLaneOff,
} from '../protocol/peer.ts';
import type { Stats } from '../stats/stats.ts';
import { createDownloads, type Download } from './downloads.ts';
import { createMeter } from './meter.ts';
import { createPatience, saysGone } from './patience.ts';
import type { Peer, Supply } from './ports.ts';
import type { Silence } from './silence.ts';
import type { Verification } from './verification.ts';

/** A byte is worth so many µs of waiting for the next: a peer that sends less than 5 kB/s stalls, however often it sends. */
const byteUs = 183;

export interface SupplyHost {
  clock: Clock;
  stats: Pick<Stats, 'count' | 'wasted'>;
  silence: Pick<Silence, 'drifted'>;
  verification: Pick<Verification, 'piece'>;
  /** Something happened that the schedule may act on. */
  changed(): void;
}

/** The same, as the peer's own parts have it. */
export interface OwnSupply extends Supply {
  /** The other side says something, whatever it is. */
  heard(): void;
  /** Data came. What is not taken: nothing asked for it, or its piece comes in too many. */
  data(m: DataMessage): 'unsolicited' | 'crumbs' | undefined;
  rejected(reason: number, ids: number[]): void;
  pong(m: Message & { type: 'pong' }): void;
  /** The link has ended. */
  end(): void;
}

export const createSupply = (peer: Peer, { clock, stats, silence, verification, changed }: SupplyHost): OwnSupply => {
  const nowUs = () => Math.floor(clock.now() * 1000);
  const patience = createPatience(clock, peer.link.role === 'seed', peer.ping);
  const downloads = createDownloads();
  const meter = createMeter(clock);

  /** What came of it is for nothing, and the rest does not come. */
  const lose = (d: Download) => {
    stats.wasted(d.received, d.lane);
    if (d.lane) peer.lane?.gone(d.length - d.received);
  };
  const idle = () => {
    if (!downloads.queued()) meter.idle();
  };
  /** Nothing is asked of it until then. */
  const pauseUntil = (us: number) => {
    supply.stalledUntilUs = Math.max(supply.stalledUntilUs, us);
  };

  const supply: OwnSupply = {
    downloads,
    meter,
    dataUs: 0,
    stalledUntilUs: 0,
    behindUs: 0,
    cameBehindUs: 0,
    downloaded: 0,
    cancel(match) {
      const list = [...downloads.all.values()].filter((d) => !d.checking && match(d));
      for (const d of list) {
        downloads.cancel(d, clock.now());
        lose(d);
      }
      idle();
      peer.sendIds(
        'cancel',
        list.map((d) => d.id),
      );
      return list;
    },
    outdone(match, length, durationMs) {
      const pause = patience.late(supply.cancel(match), length, durationMs * 1000, silence.drifted());
      if (typeof pause === 'number') pauseUntil(pause && nowUs() + pause);
      // Not amid what the schedule has decided.
      else queueMicrotask(() => peer.drop(pause, byePolicy));
    },
    brought: patience.brought,
    stalled(now) {
      const pause = patience.stalled(silence.drifted());
      if (typeof pause === 'number') pauseUntil(now + pause);
      else peer.drop(pause, byePolicy);
    },
    heard: patience.heard,
    data(m) {
      const d = downloads.data(m, clock.now());
      const size = m.payload.length;
      if (d === 'malformed') throw new Malformed('limit');
      if (d === 'crumbs') return d;
      if (d === 'unsolicited') {
        stats.count('unsolicited_messages');
        return d;
      }
      const late = d === 'canceled' || d === 'taken back';
      patience.data(size);
      const from = Math.max(supply.dataUs, late ? 0 : d.sentUs);
      supply.dataUs = Math.min(nowUs(), from + size * byteUs);
      if (late) {
        stats.count('canceled_messages');
        stats.wasted(size, d === 'canceled' ? laneForeground : laneBackground);
        return undefined;
      }
      if (d.lane) supply.cameBehindUs = nowUs();
      else meter.arrived(size, nowUs() - d.sentUs, !downloads.queued());
      if (d.checking) verification.piece(peer, d);
      return undefined;
    },
    rejected(reason, ids) {
      let lie = false;
      const lanes = new Set(ids.map((id) => downloads.all.get(id)?.lane));
      const urgent = !lanes.has(laneBackground) || lanes.has(laneForeground);
      const until = nowUs() + patience.rejected(reason, urgent);
      // A peer that gives way is not at fault.
      if (lanes.has(laneBackground)) supply.behindUs = reason === rejectLaneOff ? Number.MAX_SAFE_INTEGER : until;
      if (urgent) pauseUntil(until);
      for (const id of ids) {
        const d = downloads.all.get(id);
        if (!d || d.checking) continue;
        stats.count(`rejected_${reason}`);
        lose(d);
        downloads.remove(d);
        // It would have said first that the piece is gone. Anything else may pass.
        if (saysGone(reason) && peer.holdings.remove(d.segment, d.piece)) lie = true;
      }
      idle();
      if (lie) peer.drop('false-have', byePolicy, true);
      changed();
    },
    pong({ nonce, sentAt }) {
      const took = (nowUs() - sentAt) >>> 0;
      if (patience.pong(nonce, took)) return peer.drop('stalled', byePolicy);
      meter.roundTrip(took);
    },
    end() {
      for (const d of [...downloads.all.values()]) {
        if (!d.checking) lose(d);
        downloads.remove(d);
      }
      patience.stop();
    },
  };
  return supply;
};
