/** How long one side of a link puts up with the other: the rules of spec/peer-protocol.md on rejects, stalls, lateness and silence. */
import type { Clock } from '../ports.ts';
import { rejectBudget, rejectBusy, rejectLaneOff } from '../protocol/peer.ts';
import { pieceSize } from '../segment/index.ts';
import type { Download } from './downloads.ts';

export interface Patience {
  /** Something came, whatever it was. */
  heard(): void;
  /** Data came, if only of what was canceled. */
  data(bytes: number): void;
  /** Requests ran out of time. How long to leave the peer alone, µs, or why it is to go; `excused`: it is not to blame for its silence. */
  stalled(excused: boolean): number | 'stalled' | 'timeout';
  /** A piece came whole. */
  brought(): void;
  /** Requests for a segment of so many bytes, played in so many µs, were taken back since another source is quicker: likewise, 0 if it brings enough. */
  late(gone: Download[], length: number, durationUs: number, excused: boolean): number | 'stalled' | 'timeout';
  /** It rejected something. How long to leave it alone, µs; longer each time, if a load waits. */
  rejected(reason: number, urgent: boolean): number;
  /** Whether a peer that answers this ping, after so many µs, is to go: it runs, had the requests before the first ping, and had time. */
  pong(nonce: number, tookUs: number): boolean;
  stop(): void;
}

const stallPauseUs = 2_000_000;
const longestPauseUs = 30_000_000;
/** Stalls in a row, without as much as a piece in between, that end a link. */
const mostStalls = 3;
const rejectPauseUs = 200_000;
const waitUs: Record<number, number> = {
  [rejectBusy]: rejectPauseUs,
  [rejectBudget]: 5_000_000,
  [rejectLaneOff]: 30_000_000,
};
/** How long a peer that has stalled and answers a ping may go on without data. */
const muteMs = 3_000;
/** A pong that took longer says nothing: after an outage requests, and what took them back, arrive together. */
const latePongUs = 2_000_000;

/** What a peer has to bring to be asked again at once: the segment's own rate, divided by this. */
const lateShare = 10;
/** Pieces without lateness, as many as a new peer is asked for, after which the next pause is the shortest again. */
const promptPieces = 4;

/** Whether a reject says that there is no such piece, not that it does not suit now. */
export const saysGone = (reason: number): boolean => !waitUs[reason];

/** `lenient`: a seed, which may be short of budget and is its operator's business. */
export const createPatience = (clock: Clock, lenient: boolean, ping: (nonce: number) => void): Patience => {
  /** Stalls, and rejects, in a row without as many bytes as a piece has, and the bytes so far. */
  let stalls = 0;
  let rejects = 0;
  let got = 0;
  /** All data of the link, and whether nothing at all has come since the first of the stalls. */
  let served = 0;
  let silent = false;
  /** Pings, and one more, since the last stall without data since; the nonce of the latest. */
  let mute = 0;
  let nonce = 0;
  let timer = 0;
  /** Times in a row that it was too slow; when that was judged last, the pieces since then, and when data came last. */
  let lates = 0;
  let judgedUs = -1;
  let pieces = 0;
  let dataUs = -1;
  const nowUs = () => Math.floor(clock.now() * 1000);
  const pauseOf = (times: number) => Math.min(longestPauseUs, stallPauseUs * 2 ** times);
  /** One more stall: why the peer is to go, if it is. */
  const count = (excused: boolean) => {
    silent ||= !stalls;
    got = 0;
    if (++stalls < mostStalls || lenient) return undefined;
    // A peer that shows that it is there is to blame. One that sends nothing any more is in another network, or asleep.
    return excused || (silent && served >= pieceSize) ? 'timeout' : 'stalled';
  };
  /** A ping that no other pong answers. */
  const probe = () => ping(++nonce);
  return {
    heard() {
      silent = false;
    },
    data(bytes) {
      mute = 0;
      dataUs = nowUs();
      got += bytes;
      served += bytes;
      if (got >= pieceSize) got = stalls = rejects = 0;
    },
    stalled(excused) {
      const pause = pauseOf(stalls);
      const why = count(excused);
      if (why || lenient) return why ?? pause;
      if (!mute) {
        mute = 1;
        clock.clearTimer(timer);
        probe();
      }
      return pause;
    },
    brought() {
      if (++pieces >= promptPieces) lates = 0;
    },
    late(gone, length, durationUs, excused) {
      const first = gone.find((d) => !d.lane && d.reason === 'near' && d.sentUs > judgedUs);
      if (lenient || !first) return 0;
      const enough = pieces * pieceSize * lateShare * durationUs;
      judgedUs = nowUs();
      const due = length * (judgedUs - first.sentUs);
      const slow = !pieces || enough < due;
      pieces = 0;
      if (!slow) return 0;
      const pause = pauseOf(lates++);
      // One of which not a byte came has stalled. No ping tells whether it could have sent: others may have asked it before, and
      // what was taken back does not come any more.
      return (dataUs < first.sentUs && count(excused)) || pause;
    },
    rejected(reason, urgent) {
      mute = 0; // that is an answer, if a late one
      return Math.min(longestPauseUs, (waitUs[reason] ?? rejectPauseUs) * 2 ** (urgent ? rejects++ : 0));
    },
    pong(n, tookUs) {
      if (!mute || n !== nonce) return false;
      if (tookUs > latePongUs) {
        mute = 0;
        return false;
      }
      if (mute > 1) return true;
      mute = 2;
      timer = clock.setTimer(probe, muteMs);
      return false;
    },
    stop: () => clock.clearTimer(timer),
  };
};
