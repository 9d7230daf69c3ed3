/**
 * One title that this page plays. Made when a player opens a manifest; lives through losses of the session. Its rooms:
 * membership of a swarm, loading of segments, the report.
 */

import type { PlayedTitle } from './handle.ts';
import type { Links } from './link/links.ts';
import type { Handle, TitleSnapshot } from './playback.ts';
import type { Reason } from './ports.ts';
import type { RangeMessage, RevocationMessage, Welcome } from './session/messages.ts';
import { createLoading } from './title/loading.ts';
import { createMembership, type Membership } from './title/membership.ts';
import type { TitleOptions } from './title/options.ts';
import { createReport } from './title/report.ts';
import { createLine } from './transfer/line.ts';

/** Kept behind the playhead in the range told to the tracker. */
const behindMs = 30_000;
/** Segments ahead of the asked one in it. */
const toldAhead = 4;

export interface Title extends PlayedTitle {
  readonly links: Links;
  /** A session is open, for the first time or again. */
  enter(welcome: Welcome): void;
  /** The session is gone; links and engine go on. */
  lost(): void;
  /** No session will come. */
  refused(reason: Reason): void;
  owns: Membership['owns'];
  /** The tracker changed something that `welcome` had said. `revoked` comes on top of what is revoked already. */
  amend(welcome: Welcome, revoked: RevocationMessage[]): void;
  /** Links close while a paused picture is hidden, and come back afterwards. `atOnce`: there is no time for a farewell. */
  setResting(resting: boolean, atOnce?: boolean): void;
  /** Sends what has been counted since the last time. `last`: the page is going. */
  sendStats(last?: boolean): void;
  /** Leaves the swarm and lets go of everything. */
  stop(): void;
  snapshot(): TitleSnapshot;
}

export function createTitle(o: TitleOptions): Title {
  const { manifest, session } = o;
  const { clock } = o.environment;
  const handles = new Set<Handle>();
  const report = createReport(() => clock.now());
  const line = createLine(clock);
  let range: RangeMessage | undefined;
  let closed = false;

  const collect = (handle: Handle) => {
    try {
      handle.onCollect?.();
    } catch (error) {
      o.caught('collect', error);
    }
  };

  const sendStats = (last?: boolean) => {
    handles.forEach(collect);
    const swarm = member.swarm();
    if (swarm && session.state === 'ready') {
      session.send({ type: 'stats', swarm, ...report.take(member.engine(), last) });
    }
  };

  const bypass = (bytes: number, ms?: number): Reason => {
    if (ms) line.bypassed(bytes, ms);
    const reason = member.off() ?? 'no-holder';
    report.bypassed(bytes, reason);
    return reason;
  };

  const member = createMembership(o, {
    line,
    stats: report.stats,
    range: () => range,
    next: () => loading.next(),
    linkFailed: report.linkFailed,
    decided: () => loading.goOn(),
    sendStats,
  });
  const { links } = member;
  const loading = createLoading({ ...o, ...member, clock, line, bypass });

  return {
    ...member,
    handles,
    get closed() {
      return closed;
    },
    get active() {
      return !closed && (member.engine() !== undefined || member.mayStart());
    },
    get alone() {
      return !member.engine();
    },
    load(request, onProgress) {
      const { startMs, durationMs } = request.upcoming.slice(0, toldAhead).at(-1) ?? request;
      const whole = (ms: number) => Math.max(0, Math.round(ms + (request.zeroMs ?? 0)));
      range = { from_ms: whole(request.startMs - request.deadlineMs() - behindMs), to_ms: whole(startMs + durationMs) };
      return loading.load(request, onProgress);
    },
    bypass,
    capacity: line.told,
    observe(delta) {
      report.observe(delta);
      if (delta.startup_ms !== undefined) member.pictured();
    },
    collect,
    owns: member.owns,
    sendStats,
    stop() {
      if (closed) return;
      sendStats(true);
      closed = true;
      member.stop();
    },
    snapshot() {
      const engine = member.engine()?.snapshot();
      return {
        manifest,
        ...member.snapshot(),
        links: { open: links.open, opening: links.opening },
        off: member.off() ?? engine?.off ?? null,
        ...report.totals(),
        engine,
      };
    },
  };
}
