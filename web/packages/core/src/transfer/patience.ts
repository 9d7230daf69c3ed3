/** How long one side of a link puts up with the other: the rules of spec/peer-protocol.md on rejects, stalls and silence. */
import type { Clock } from '../ports.ts';
import { rejectBudget, rejectBusy, rejectLaneOff } from '../protocol/peer.ts';
import { pieceSize } from '../segment/index.ts';

export interface Patience {
  /** Something came, whatever it was. */
  heard(): void;
  /** Data came, if only of what was canceled. */
  data(bytes: number): void;
  /** Requests ran out of time. How long to leave the peer alone, µs, or why it is to go; `excused`: it is not to blame for its silence. */
  stalled(excused: boolean): number | 'stalled' | 'timeout';
  /** It rejected something. How long to leave it alone, µs; longer each time, if somebody waits. */
  rejected(reason: number, urgent: boolean): number;
  /** Whether who answers this ping, after so many µs, is to go: it runs, had the requests before the first ping, and had time. */
  pong(nonce: number, tookUs: number): boolean;
  /** Whether a further message of those that data do not bring with them is one too many. */
  chatter(): boolean;
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
/** Control messages in so much time: each costs the page a decision. */
const mostChatter = 1_000;
const chatterMs = 5_000;

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
  let said = 0;
  let saidAt = 0;
  /** A ping that no other pong answers. */
  const probe = () => ping(++nonce);
  return {
    heard() {
      silent = false;
    },
    data(bytes) {
      mute = 0;
      got += bytes;
      served += bytes;
      if (got >= pieceSize) got = stalls = rejects = 0;
    },
    stalled(excused) {
      silent ||= !stalls;
      const pause = Math.min(longestPauseUs, stallPauseUs * 2 ** stalls++);
      got = 0;
      if (lenient) return pause;
      // Who shows that it is there is to blame. Of whom nothing comes any more is in another network, or asleep.
      if (stalls >= mostStalls) return excused || (silent && served >= pieceSize) ? 'timeout' : 'stalled';
      if (!mute) {
        mute = 1;
        clock.clearTimer(timer);
        probe();
      }
      return pause;
    },
    rejected: (reason, urgent) =>
      Math.min(longestPauseUs, (waitUs[reason] ?? rejectPauseUs) * 2 ** (urgent ? rejects++ : 0)),
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
    chatter() {
      if (clock.now() - saidAt > chatterMs) {
        saidAt = clock.now();
        said = 0;
      }
      return ++said > mostChatter;
    },
    stop: () => clock.clearTimer(timer),
  };
};
