/** Whether one peer is silent, or all are because this side is in another network (spec/peer-protocol.md, "Silence"). */
import type { Clock, LinkCloseReason } from '../ports.ts';
import { byeOverLimit } from '../protocol/peer.ts';
import type { Peer, Watched } from './ports.ts';

export interface SilenceHost {
  clock: Clock;
  linked(): Peer[];
  /** Another socket to the tracker, soon: this side has moved, or (`woke`) did not run, and whatever is lost now is lost for that. */
  hurry(woke?: boolean): void;
  /** Calls when this side is known to be in another network; returns a function that ends it. */
  onMoved?(f: () => void): () => void;
}

export interface Silence {
  /** Whether this side was adrift of late: then no peer is to blame for silence. */
  drifted(): boolean;
  /** The tracker names a peer to which there is a link; `again` offers another, if that one turns out dead. */
  named(peer: Peer, again: () => void): void;
  gone(peer: Peer, reason: LinkCloseReason): void;
  stop(): void;
}

const lookMs = 1_000;
/** Without a look: this side did not run; and so long that its session may be lost for it. */
const sleptMs = 3_000;
const asleepMs = 10_000;
/** Looks from which on a link is silent, and from which on, when all are, this side is adrift. */
const silentFrom = 2;
const adriftFrom = 3;
const noBlameMs = 15_000;
/** Once this side has moved: until what it says may arrive, and then until it is answered. */
const checkMs = 200;
const pongMs = 500;
const namedMs = 60_000;
/** After a link opened: a further offer of a peer that has just made one is not heard. */
const offersMs = 2_500;

/** One look after the other: counts what is unheard; says whether this side has just come adrift, and how long it had not looked. */
export const createVigil = () => {
  let last: number | undefined;
  let adrift = false;
  return (now: number, all: Watched[]): { adrift: boolean; slept: number } => {
    const gap = now - (last ?? now);
    last = now;
    const slept = gap > sleptMs ? gap : 0;
    const quiet = all.some(({ owed }) => owed) && !all.some(({ came }) => came);
    for (const w of all) {
      if (slept) w.unheard = 1;
      else if (w.came) w.unheard = 0;
      else if (w.unheard || quiet) w.unheard++;
    }
    const was = adrift;
    adrift = all.length > 1 && all.every((w) => w.unheard >= adriftFrom) && all.some(({ viewer }) => viewer);
    return { adrift: adrift && !was, slept };
  };
};

export const createSilence = ({ clock, linked, hurry, onMoved }: SilenceHost): Silence => {
  const look = createVigil();
  let driftedAt = Number.NEGATIVE_INFINITY;

  const drift = () => {
    driftedAt = clock.now();
    hurry();
  };
  const drifted = () => clock.now() - driftedAt < noBlameMs;
  const ready = () => linked().filter((p) => p.ready);

  const restMs = ({ since }: Watched) => since + offersMs - clock.now();
  const fresh = ({ namedUntil }: Watched) => namedUntil > clock.now();
  /** A silent link is replaced, if the tracker has named its peer. */
  const giveWay = (p: Peer) => {
    const { unheard, came } = p.watched;
    if (unheard >= silentFrom && !came && fresh(p.watched) && restMs(p.watched) <= 0) p.drop('timeout', byeOverLimit);
  };

  const watch = () => {
    timer = clock.setTimer(watch, lookMs);
    const all = ready();
    const { adrift, slept } = look(
      clock.now(),
      all.map(({ watched, supply }) => {
        watched.owed = supply.downloads.all.size > 0;
        return watched;
      }),
    );
    for (const p of all) {
      p.watched.came = false;
      if (p.watched.unheard === 1) p.ping();
      giveWay(p);
    }
    if (adrift && !drifted()) drift();
    if (slept >= asleepMs) hurry(true);
  };
  let timer = clock.setTimer(watch, lookMs);

  const release = onMoved?.(() => {
    drift();
    clock.clearTimer(timer);
    timer = clock.setTimer(watch, checkMs + pongMs);
    for (const { watched, ping } of ready()) {
      watched.unheard = 1;
      watched.came = false;
      clock.setTimer(ping, checkMs);
    }
  });

  return {
    drifted,
    named(p, again) {
      p.watched.namedUntil = clock.now() + namedMs;
      p.watched.again = again;
      giveWay(p);
    },
    gone({ watched }, reason) {
      if (/timeout|failed/.test(reason) && fresh(watched)) clock.setTimer(watched.again!, restMs(watched));
    },
    stop() {
      clock.clearTimer(timer);
      release?.();
    },
  };
};
