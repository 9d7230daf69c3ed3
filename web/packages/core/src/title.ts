/**
 * One title that this page plays: its membership of a swarm, its links, its engine, its statistics. Made when a player
 * opens a manifest; lives through losses of the session.
 */

import type { Environment } from './environment.ts';
import type { Emitter, LeewayEvents, NoticeCode } from './events.ts';
import type { Handle } from './handle.ts';
import { createLinks, type Links } from './link/links.ts';
import { add, type Figures, fromOrigin, type Loading, type Observation, type TitleSnapshot } from './playback.ts';
import type { Engine, ProgressFunction, Reason, SegmentRequest } from './ports.ts';
import { hex } from './segment/index.ts';
import { fromBase64url, idToHex } from './session/base64.ts';
import type { Joined, RangeMessage, RevocationMessage, ViewerRole, Welcome } from './session/messages.ts';
import type { Refusal, TrackerSession } from './session/session.ts';
import { createStats } from './stats/stats.ts';

/** What the library knows of the site's rules; made from `welcome`. */
export interface Rules {
  key(url: string): string;
  title(manifestKey: string, explicit?: string): string;
}

/** What an engine is made from. */
export interface EngineContext {
  welcome: Welcome;
  /** Own peer ID, hex; read again whenever it is needed, since a lost session may bring a new one. */
  self(): string;
  /** Swarm ID, hex. */
  swarm: string;
  /** Whether this viewer sends to others. */
  uploads(): boolean;
}

export interface TitleOptions {
  manifest: string;
  title?: string;
  hasToken: boolean;
  environment: Environment;
  session: TrackerSession;
  rules(welcome: Welcome): Rules;
  hasCredential(url: string): boolean;
  createEngine(context: EngineContext, environment: Environment): Engine;
  events: Emitter<LeewayEvents>;
  notice(code: NoticeCode, message: string, hint: string): void;
  caught(where: string, error: unknown): void;
}

/** How long segments that can wait are held for a session that is just coming up. */
const startGraceMs = 2_500;
/** After joining: how long a first link may take before segments stop waiting for one. */
const linkGraceMs = 4_000;
/** Segments whose playhead is nearer than this many of their durations never wait. */
const urgentDurations = 1.5;
/** How long after the manifest joining waits, so that the first picture has the machine to itself. */
const startupMs = 1_000;
const rejoinMs = 5_000;
/** Kept behind the playhead in the range told to the tracker. */
const behindMs = 30_000;
const updateDebounceMs = 200;
const seePolicy = "See the site's policy.";

type TimerName = 'update' | 'stats' | 'soon' | 'rejoin' | 'linking';

export interface Title {
  readonly manifest: string;
  readonly links: Links;
  /** Players that have this title open. */
  readonly handles: Set<Handle>;
  readonly closed: boolean;
  /** Segments go through `load` unless it is certain that no peer delivery comes. */
  readonly active: boolean;
  /**
   * By the engine if there is one, straight from the origin otherwise. A defect of the engine falls back to the origin
   * too; the origin's own errors are the player's business.
   */
  load(request: SegmentRequest, onProgress: ProgressFunction): Loading;
  /** Counts a segment that came from the origin without the engine. Returns the reason why. */
  bypass(bytes: number): Reason;
  capacity(): number | undefined;
  observe(delta: Partial<Observation>): void;
  /** Has a player report what it has. */
  collect(handle: Handle): void;
  /** A session is open, for the first time or again. */
  enter(welcome: Welcome): void;
  /** The session is gone; links and engine go on. */
  lost(): void;
  /** No session will come. */
  refused(): void;
  owns(swarm: string): boolean;
  /** The tracker changed something that `welcome` had said. `revoked` comes on top of what is revoked already. */
  amend(welcome: Welcome, revoked: RevocationMessage[]): void;
  /** Links close while nobody looks at a paused picture, and come back afterwards. */
  setResting(resting: boolean): void;
  /** Sends what has been counted since the last time. `last`: the page is going. */
  sendStats(last?: boolean): void;
  /** Leaves the swarm and lets go of everything. */
  stop(): void;
  snapshot(): TitleSnapshot;
}

export function createTitle(o: TitleOptions): Title {
  const { manifest, environment, session, events } = o;
  const { clock } = environment;
  const openedAt = clock.now();
  const handles = new Set<Handle>();
  const timers: Partial<Record<TimerName, number>> = {};
  /** Segments held back until it is clear whether there is an engine. */
  const waiting = new Set<() => void>();
  /** Segments that came without the engine. */
  const own = createStats();
  /** What players observed and links failed of, since the last report and in all. */
  let pending: Figures = {};
  const total: Figures = {};
  let engine: Engine | undefined;
  let welcome: Welcome | undefined;
  let name: string | undefined;
  let swarm: string | undefined;
  let viewers = 0;
  let seeds = 0;
  let off: Reason | null = null;
  let closed = false;
  /** Counts joins: the answer to an old one is nobody's. */
  let joining = 0;
  let joinedAt = 0;
  let range: RangeMessage | undefined;
  let lastWant = 0;
  let statsAt = openedAt;

  const links = createLinks({
    environment,
    signal: (to, link, body) => {
      if (swarm) session.send({ type: 'signal', swarm, to, link, ...body });
    },
    opened: (link) => {
      if (engine && !links.resting) engine.addLink(link);
      else link.close('idle', 2);
    },
    failed(reason) {
      count({ link_failures: { [reason]: 1 } });
      const { blocked } = links;
      if (!blocked || off) return;
      leaveOut(
        blocked,
        'links-blocked',
        `No link to another viewer or a seed opens (${blocked}).`,
        blocked === 'lna-denied' ? 'The viewer can allow local network access.' : 'TURN helps.',
      );
    },
    changed() {
      if (closed) return;
      if (links.open > 0 && role() !== 'off') setOff(null);
      if (links.want > lastWant || links.open === 0) updateSoon();
      setLinking();
    },
    caught: o.caught,
  });

  const clearTimers = (...names: TimerName[]) => {
    for (const timer of names) {
      clock.clearTimer(timers[timer] ?? 0);
      timers[timer] = 0;
    }
  };

  const setTimer = (timer: TimerName, f: () => void, ms: number) => {
    clearTimers(timer);
    timers[timer] = clock.setTimer(() => {
      timers[timer] = 0;
      try {
        f();
      } catch (error) {
        o.caught(timer, error);
      }
    }, ms);
  };

  const count = (figures: Figures) => {
    add(pending, figures);
    add(total, figures);
  };

  // ---- whether peer delivery comes ----

  const goOn = () => {
    for (const go of [...waiting]) go();
  };

  const setOff = (reason: Reason | null) => {
    if (off === reason) return;
    off = reason;
    engine?.setOff(reason);
    events.emit('off', { manifest, reason });
  };

  /** Peer delivery does not come for this title, as things stand. */
  const leaveOut = (reason: Reason, code?: NoticeCode, message = '', hint = '') => {
    if (code && off !== reason) o.notice(code, message, hint);
    setOff(reason);
    goOn();
  };

  const role = (): ViewerRole => {
    const policy = welcome?.policy;
    if (!policy || policy.control_group) return 'off';
    // Nothing is sent over a line that the viewer pays for by the byte.
    return policy.role === 'full' && environment.metered() ? 'leech' : policy.role;
  };

  const applyPolicy = () => {
    const { session: id, ice_servers, policy, limits } = welcome!;
    links.configure({
      self: idToHex(id),
      iceServers: ice_servers,
      policy: { ...policy, role: role() },
      maxLinks: Math.min(policy.max_links, limits.links),
    });
    if (role() !== 'off') setOff(links.blocked);
    else if (policy.control_group) {
      leaveOut('control-group', 'control-group', 'This viewer is in the control group.', seePolicy);
    } else leaveOut('policy', 'policy-off', 'Peer delivery is off for this viewer.', seePolicy);
  };

  const setLinking = () => {
    const fresh = clock.now() - joinedAt < linkGraceMs && role() !== 'off';
    engine?.setLinking(links.open === 0 && (fresh || links.opening > 0));
  };

  /** Whether a session, or the join, is on its way for the first time. */
  const mayStart = () =>
    !off && /^(connect|ready|wait)/.test(session.state) && clock.now() - openedAt < startGraceMs + linkGraceMs;

  // ---- membership ----

  /** Tells the engine what the tracker said of keys, revocations and the time. */
  const inform = ({ verify_keys, revocations }: Pick<Welcome, 'verify_keys' | 'revocations'>) => {
    engine?.setKeys(
      verify_keys.flatMap(({ key_id, alg, key }) => {
        const bytes = fromBase64url(key);
        return alg === 1 && bytes?.length === 65 ? [{ keyId: keyId(key_id), key: bytes }] : [];
      }),
    );
    engine?.revoke(
      revocations.map((r) =>
        'key_id' in r ? { keyId: keyId(r.key_id) } : { site: r.site, prefix: r.prefix, minIssuedAt: r.min_issued_at },
      ),
    );
    engine?.setServerTime(session.serverOffsetMs);
  };

  const makeEngine = (swarmHex: string) => {
    const made = o.createEngine(
      {
        welcome: welcome!,
        swarm: swarmHex,
        self: () => idToHex(welcome!.session),
        uploads: () => role() !== 'leech',
      },
      environment,
    );
    engine = made;
    for (const event of ['segment', 'piece', 'link', 'unlink', 'contradiction', 'off'] as const) {
      made.on(event, (detail) => events.emit(event, { manifest, ...detail } as never));
    }
    made.on('unlink', ({ peer, banned }) => {
      if (banned) links.avoid(peer);
    });
    inform(welcome!);
    made.setOff(off);
  };

  const join = async (key: string) => {
    const attempt = ++joining;
    const current = () => attempt === joining && !closed;
    clearTimers('rejoin');
    try {
      const answer = await session.join({
        title: name!,
        manifest: key,
        role: role(),
        want: links.want,
        range,
      });
      if (current()) joined(answer);
    } catch (error) {
      const { code, message, hint, retry_after_ms = 0 } = error as Refusal;
      if (!current() || code === 'lost') return;
      o.notice('tracker-error', `The tracker did not let this viewer join (${code}). ${message}`, hint);
      const wait = Math.max(rejoinMs * (0.5 + environment.random()), retry_after_ms);
      if (code !== 'bad-title') setTimer('rejoin', () => void join(key), wait);
    }
  };

  const joined = (answer: Joined) => {
    swarm = answer.swarm;
    viewers = answer.viewers;
    seeds = answer.seeds;
    joinedAt = clock.now();
    const swarmHex = idToHex(swarm);
    if (!engine) makeEngine(swarmHex);
    setTimer('update', update, welcome!.update_interval_ms);
    setTimer('stats', statsTick, welcome!.stats_interval_ms);
    setTimer('linking', setLinking, linkGraceMs);
    setLinking();
    events.emit('joined', { manifest, title: name!, swarm: swarmHex, viewers, seeds });
    goOn();
  };

  const update = () => {
    setTimer('update', update, welcome!.update_interval_ms);
    lastWant = links.want;
    const message = { range, saturated: lastWant === 0, links: links.open, want: lastWant };
    session.send({ type: 'update', swarm: swarm!, ...message });
  };

  const updateSoon = () => {
    if (!swarm || timers.soon || session.state !== 'ready' || closed) return;
    setTimer('soon', update, updateDebounceMs);
  };

  const statsTick = () => {
    setTimer('stats', statsTick, welcome!.stats_interval_ms);
    title.sendStats();
  };

  // ---- loading ----

  /** Holds a segment that can wait for a session that is coming up. */
  const awaitStart = (request: SegmentRequest, signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const slack = request.deadlineMs() - urgentDurations * request.durationMs;
      if (closed || slack <= 0 || !mayStart()) return resolve();
      const go = () => {
        waiting.delete(go);
        clock.clearTimer(timer);
        if (signal.aborted) reject(new Error('aborted'));
        else resolve();
      };
      const timer = clock.setTimer(go, Math.min(startGraceMs, slack));
      waiting.add(go);
      signal.addEventListener('abort', go);
    });

  const noteRange = (request: SegmentRequest) => {
    const { startMs, durationMs } = request.upcoming.at(-1) ?? request;
    const whole = (ms: number) => Math.max(0, Math.round(ms));
    range = { from_ms: whole(request.startMs - request.deadlineMs() - behindMs), to_ms: whole(startMs + durationMs) };
  };

  const title: Title = {
    manifest,
    links,
    handles,
    get closed() {
      return closed;
    },
    get active() {
      return !closed && (engine !== undefined || mayStart());
    },
    load(request, onProgress) {
      noteRange(request);
      const controller = new AbortController();
      const { signal } = controller;
      let inner: Loading | undefined;
      const run = async () => {
        if (!engine) await awaitStart(request, signal);
        let refusal: unknown;
        const origin: SegmentRequest['origin'] = (stop, progress) =>
          request.origin(stop, progress).catch((error: unknown) => {
            refusal = error;
            throw error;
          });
        try {
          inner = engine?.load({ ...request, origin }, onProgress);
          if (inner) return await inner.result;
        } catch (error) {
          if (signal.aborted || error === refusal) throw error;
          o.caught('load', error);
        }
        return fromOrigin(request, signal, onProgress, title.bypass);
      };
      return {
        result: run(),
        abort() {
          controller.abort();
          inner?.abort();
        },
      };
    },
    bypass(bytes) {
      const reason = off ?? 'no-holder';
      own.played(bytes);
      own.segment('origin', reason);
      return reason;
    },
    capacity: () => engine?.capacity(),
    observe: (delta) => count(delta as Figures),
    collect(handle) {
      try {
        handle.onCollect?.();
      } catch (error) {
        o.caught('collect', error);
      }
    },
    enter(message) {
      welcome = message;
      const { site, policy } = message;
      let key: string;
      try {
        const rules = o.rules(message);
        key = rules.key(manifest);
        name = rules.title(key, o.title);
      } catch (error) {
        const why = (error as Error).message;
        leaveOut(
          'policy',
          why === 'foreign-host' ? 'foreign-manifest' : 'bad-manifest',
          `The manifest has no name on site ${site.name} (${why}).`,
          "Check the site's hosts and rules.",
        );
        return;
      }
      if (o.hasCredential(manifest) && !o.hasToken && policy.signed_manifests !== 'share') {
        leaveOut(
          'needs-token',
          'needs-token',
          "The manifest's URL carries a credential, and there is no join token.",
          'Pass data-token, or set policy.signed_manifests: share.',
        );
        return;
      }
      applyPolicy();
      inform(message);
      // Links cost the page's thread some tens of milliseconds, and the first segments are too urgent to come by one.
      setTimer('rejoin', () => void join(key.split('?')[0]!), Math.max(0, openedAt + startupMs - clock.now()));
    },
    lost() {
      clearTimers('update', 'stats', 'soon', 'rejoin');
      joining++;
    },
    refused() {
      if (!engine) leaveOut('policy');
    },
    owns: (id) => swarm === id,
    amend(message, revoked) {
      const changed = welcome && welcome.policy !== message.policy;
      welcome = message;
      if (changed) {
        applyPolicy();
        updateSoon();
      }
      inform({ ...message, revocations: revoked });
    },
    setResting(resting) {
      if (links.resting === resting) return;
      links.resting = resting;
      if (resting) links.closeAll('idle', 2);
      updateSoon();
    },
    sendStats(last) {
      for (const handle of handles) title.collect(handle);
      if (!swarm || session.state !== 'ready') return;
      const message = { link_failures: {}, ...own.take() } as unknown as Figures;
      add(message, pending);
      if (engine) add(message, engine.takeStats() as unknown as Figures);
      pending = {};
      const interval_ms = Math.max(1, Math.round(clock.now() - statsAt));
      statsAt = clock.now();
      session.send({ type: 'stats', swarm, interval_ms, ...message }, last);
    },
    stop() {
      if (closed) return;
      title.sendStats(true);
      closed = true;
      joining++;
      if (swarm) session.send({ type: 'leave', swarm }, true);
      clearTimers('update', 'stats', 'soon', 'rejoin', 'linking');
      goOn();
      links.stop();
      engine?.stop();
      engine = undefined;
    },
    snapshot() {
      const snapshot = engine?.snapshot();
      const totals = own.totals();
      if (snapshot) add(totals as unknown as Figures, snapshot.totals as unknown as Figures);
      const { link_failures, ...playback } = total;
      return {
        manifest,
        title: name,
        swarm: swarm && idToHex(swarm),
        viewers,
        seeds,
        links: { open: links.open, opening: links.opening },
        linkFailures: { ...(link_failures as Figures) },
        off: off ?? snapshot?.off ?? null,
        totals,
        playback: { stalls: 0, stall_ms: 0, played_ms: 0, played_bits: 0, switches: 0, ...playback },
        engine: snapshot,
      };
    },
  };
  return title;
}

function keyId(base64url: string): string {
  return hex(fromBase64url(base64url)!);
}
