/**
 * When this side of a link pings, and when the other side counts as gone. In rounds and not in time: what a sleeping or throttled
 * page did not hear is no silence.
 */
import type { Clock } from '../ports.ts';

const roundMs = 5_000;
/** Rounds without a message that end a link; without the hello. */
const silentRounds = 4;
const helloRounds = 2;

export const createKeepalive = (clock: Clock, ping: () => void, over: () => void) => {
  let ready = false;
  let quiet = 0;
  /** Something was sent in this round. */
  let spoke = false;
  const round = () => {
    timer = clock.setTimer(round, roundMs);
    if (++quiet >= (ready ? silentRounds : helloRounds)) return over();
    if (ready && (quiet > 1 || !spoke)) ping();
    spoke = false;
  };
  let timer = clock.setTimer(round, roundMs);
  return {
    /** The other hello is here. */
    meet() {
      ready = true;
      quiet = 0;
    },
    /** The other side lives. Before its hello that does not count. */
    heard() {
      if (ready) quiet = 0;
    },
    said() {
      spoke = true;
    },
    stop: () => clock.clearTimer(timer),
  };
};
