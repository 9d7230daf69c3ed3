/**
 * One title's membership of its swarm: joining and coming back, what the tracker is told and what it says, the links,
 * and the engine that they serve.
 */

import { createLinks, type Links } from '../link/links.ts';
import type { Engine, EngineEvents, Reason, SegmentRef } from '../ports.ts';
import { idToHex } from '../session/base64.ts';
import type { Joined, RangeMessage, ReadyOffer, RevocationMessage, Welcome } from '../session/messages.ts';
import type { Refusal } from '../session/session.ts';
import type { Stats } from '../stats/stats.ts';
import type { Line } from '../transfer/line.ts';
import { createDelivery } from './delivery.ts';
import { inform } from './inform.ts';
import { createNaming, type Naming, named } from './naming.ts';
import type { CreateEngine, EngineContext, TitleOptions } from './options.ts';
import { createSwarm, type Swarm } from './swarm.ts';
import { createTimers } from './timers.ts';
import { createUpdates } from './updates.ts';

export interface MembershipHost {
  line: Line;
  stats: Stats;
  /** What the viewer holds and will want next, on the presentation timeline. */
  range(): RangeMessage | undefined;
  /** The segments that the engine will be asked for first. */
  next(): SegmentRef[];
  linkFailed(reason: string): void;
  /** It is clear whether there is an engine, or a seed. */
  decided(): void;
  sendStats(): void;
}

export interface Membership {
  readonly links: Links;
  engine(): Engine | undefined;
  /** Why peer delivery is off, while it is. */
  off(): Reason | null;
  swarm(): string | undefined;
  owns: Swarm['owns'];
  /** Whether a session, or the join, is on its way for the first time. */
  mayStart(): boolean;
  /** Whether the engine is about to come, and a seed with it. */
  awaitsSeed(): boolean;
  enter(welcome: Welcome): void;
  /** The first picture is there; with `filling` in hand at least: whether a buffer is filled over a thin line, which links are to leave alone. */
  pictured(filling?: boolean): void;
  /** A request waits for a seed, with the line idle: engine and links come at once. */
  awaited(): void;
  lost(): void;
  refused(reason: Reason): void;
  amend(welcome: Welcome, revoked: RevocationMessage[]): void;
  setResting(resting: boolean, atOnce?: boolean): void;
  stop(): void;
  snapshot(): { title?: string; swarm?: string; viewers: number; seeds: number };
}

/** After links may be there: how long a title may take until its segments no longer come through here for nothing. */
const lateMs = 5_500;
/** After joining: how long a first link may take. */
const linkGraceMs = 4_000;
/**
 * How long links and the engine's script wait after the manifest. They wait for the first picture, which has machine and line to itself.
 * Over a thin line they wait until the buffer is filled (decision 0089).
 */
const startupMs = 5_000;
const fillMs = 30_000;
/** How long they then wait for a picture that is in hand to be on screen: it never is where the viewer has to start the player. */
const unseenMs = 1_000;
const paintMs = 100;
/** How long before that links are begun. */
const prepareMs = 50;
/** Offers that go out with a join after the picture. They find their peers a round trip sooner than offers to introduced peers. */
const readyOffers = 2;
const rejoinMs = 5_000;

export function createMembership(o: TitleOptions, host: MembershipHost): Membership {
  const { manifest, environment, session, events, script } = o;
  const { clock } = environment;
  const openedAt = clock.now();
  const swarm = createSwarm(o);
  const timers = createTimers<'rejoin' | 'begin' | 'linking'>(clock, o.caught);
  let engine: ReturnType<CreateEngine> | undefined;
  /** Makes the engine, once links may come up. */
  let maker: CreateEngine | undefined;
  let welcome: Welcome | undefined;
  let naming: Naming | undefined;
  let viewers = 0;
  let seeds = 0;
  let stopped = false;
  /** When links may be there. */
  let linkBy = openedAt + (o.file ? 0 : startupMs);
  let pictureMs = unseenMs;
  let fills = false;
  /** Counts joins: the answer to an old one is dropped. */
  let joining = 0;
  let joinedAt = 0;

  const delivery = createDelivery({
    ...o,
    welcome: () => welcome,
    changed(reason) {
      engine?.setOff(reason);
      events.emit('off', { manifest, reason });
    },
    decided: host.decided,
  });
  const { role, setOff, leaveOut, bar } = delivery;

  const updates = createUpdates({ ...o, ...host, clock, links: () => links, swarm: () => swarm.id });

  const links = createLinks({
    ...o,
    signal: (to, link, body) => {
      if (swarm.id) session.send({ type: 'signal', swarm: swarm.id, to, link, ...body });
    },
    inspection: () => engine,
    greeting: (wanted) => (links.resting ? undefined : engine?.greeting(wanted)),
    opened: (link) => {
      if (engine && !links.resting) engine.addLink(link);
      else link.close('idle', 2);
    },
    failed(reason) {
      host.linkFailed(reason);
      const { blocked } = links;
      if (!blocked || delivery.off()) return;
      leaveOut(
        blocked,
        'links-blocked',
        `No link to a peer opens (${blocked}).`,
        blocked === 'lna-denied' ? 'Allow local network access.' : 'TURN helps.',
      );
    },
    changed() {
      if (stopped) return;
      if (links.open > 0 && role() !== 'off') setOff(null);
      updates.changed();
      setLinking();
    },
  });

  const applyPolicy = (anew?: boolean) => {
    links.configure(delivery.settings());
    delivery.decide(links.blocked, anew);
  };

  /** With a key of a packager viewers make certificates themselves. */
  const coming = () => links.coming(welcome!.verify_keys.some(({ alg }) => alg > 1));

  const setLinking = () => {
    const fresh = clock.now() - joinedAt < linkGraceMs && role() !== 'off';
    engine?.setLinking(links.open === 0 && (fresh || links.opening > 0), coming());
  };

  // ---- the engine ----

  const tell = (message: Parameters<typeof inform>[1]) => {
    if (engine) inform(engine, message, session.serverOffsetMs);
  };

  /** What the engine tells, as long as there is one. */
  const heard: EngineContext['emit'] = (event, detail) => {
    if (!engine) return;
    events.emit(event, { manifest, ...detail } as never);
    const { peer, banned } = detail as Partial<EngineEvents['unlink']>;
    if (banned) links.avoid(peer!);
  };

  const makeEngine = (create: CreateEngine, swarmHex: string) => {
    engine = create(
      {
        rules: naming!.rules,
        swarm: swarmHex,
        title: naming!.name,
        self: () => idToHex(welcome!.session),
        uploads: () => !/leech|off/.test(role()),
        line: host.line,
        stats: host.stats,
        credit: o.credit,
        hurry: session.hurry,
        ahead: delivery.ahead,
        notice: o.notice,
        emit: heard,
      },
      environment,
    );
    tell(welcome!);
    engine.setOff(delivery.off());
  };

  /** Links are about to come up. */
  const expectLinks = () => {
    joinedAt = clock.now();
    timers.set('linking', setLinking, linkGraceMs);
    setLinking();
    host.decided();
  };

  // ---- joining, and what the tracker is told ----

  /** The segments whose certificates offers ask for. */
  const wanted = () => named(host.next(), naming!, environment.crypto);

  /** Has what makes the engine; false where that does not come, or not in time for this join. */
  const haveScript = async (current: () => boolean): Promise<boolean> => {
    try {
      const create = await script.need();
      if (!current()) return false;
      maker = create;
    } catch {
      const againMs = script.failed();
      if (!current()) return false;
      bar(
        'policy',
        'engine-missing',
        "Leeway's second script does not load.",
        'Serve it beside the first; allow it in script-src.',
      );
      leave();
      timers.set('rejoin', () => void join(), againMs);
      return false;
    }
    // It may have been off for want of the script.
    applyPolicy(true);
    return true;
  };

  /** Whether the join of now has not been overtaken by another. */
  const isCurrent = () => {
    const attempt = joining;
    return () => attempt === joining && !stopped;
  };

  /** Engine and links, for what was joined before the picture. */
  const begin = async () => {
    const current = isCurrent();
    if (!(await haveScript(current))) return;
    const segments = await wanted();
    if (current() && swarm.id && !engine) start(segments);
  };

  const start = (segments: string[] = []) => {
    if (!engine) makeEngine(maker!, idToHex(swarm.id!));
    expectLinks();
    links.begin(segments);
  };

  /** Joins; `early`: links and engine are not to come yet. */
  const join = async (early?: boolean) => {
    const attempt = ++joining;
    const current = isCurrent();
    timers.clear('rejoin');
    let offers: ReadyOffer[] = [];
    if (!early) {
      if (!(await haveScript(current))) return;
      if (attempt === 1) offers = links.ready(await wanted());
      if (!current()) return;
    }
    try {
      const message = {
        title: naming!.name,
        manifest: naming!.path,
        role: role(),
        want: links.want + offers.length,
        range: host.range(),
        offers,
      };
      await swarm.join(message, current, joined);
    } catch (error) {
      const { code, message, hint, retry_after_ms = 0 } = error as Refusal;
      if (!current() || code === 'lost') return;
      o.notice('tracker-error', `The tracker refused this join (${code}). ${message}`, hint);
      const wait = Math.max(rejoinMs * (0.5 + environment.random()), retry_after_ms);
      if (code !== 'bad-title') timers.set('rejoin', () => void join(), wait);
      else if (!engine) {
        swarm.id = undefined; // of an earlier session
        timers.clear('begin');
        bar('policy');
      }
    }
  };

  const joined = (answer: Joined) => {
    ({ viewers, seeds } = answer);
    links.offered(answer.offered ?? []);
    updates.begin(welcome!);
    if (maker) start();
    events.emit('joined', { manifest, title: naming!.name, swarm: idToHex(answer.swarm), viewers, seeds });
  };

  const leave = () => {
    swarm.leave();
    updates.stop();
    joining++;
  };

  return {
    links,
    engine: () => engine,
    off: delivery.off,
    swarm: () => swarm.id,
    owns: swarm.owns,
    mayStart: () => !stopped && !delivery.off() && clock.now() - linkBy < lateMs,
    awaitsSeed: () => !!swarm.id && !delivery.off() && session.state === 'ready' && coming(),
    enter(message) {
      welcome = message;
      const { site, policy } = message;
      try {
        naming = createNaming(o, message);
      } catch (error) {
        const why = (error as Error).message;
        bar(
          'policy',
          why === 'foreign-host' ? 'foreign-manifest' : 'bad-manifest',
          `The manifest has no name on site ${site.name} (${why}).`,
          "Check the site's hosts and rules.",
        );
        return;
      }
      if (naming.rules.hasCredential(manifest) && o.token === undefined && policy.signed_manifests !== 'share') {
        bar(
          'needs-token',
          'needs-token',
          "The manifest's URL carries a credential, and there is no token.",
          'Pass data-token, or set policy.signed_manifests: share.',
        );
        return;
      }
      applyPolicy(true);
      tell(message);
      // Links cost the page's thread some tens of milliseconds, and the first segment is too urgent to come by one. The
      // tracker can name peers meanwhile.
      const beginIn = linkBy - prepareMs - clock.now();
      if (beginIn > 0) {
        void join(true);
        timers.set('begin', begin, beginIn);
        return;
      }
      if (joining) {
        void join();
        return;
      }
      script.fetch();
      timers.set('rejoin', () => void join(), prepareMs);
      // Sooner with the offers.
      void links.prepare(readyOffers).then(() => {
        if (timers.isSet('rejoin') && !joining) void join();
      });
    },
    pictured(filling) {
      const now = clock.now();
      if (filling === undefined) pictureMs = paintMs;
      else fills = filling;
      if (linkBy < now + paintMs) return;
      linkBy = fills ? openedAt + fillMs : Math.min(linkBy, now + pictureMs);
      if (timers.isSet('begin')) timers.set('begin', begin, linkBy - prepareMs - now);
    },
    awaited() {
      if (!timers.isSet('begin')) return;
      linkBy = clock.now();
      timers.set('begin', begin, 0);
    },
    lost() {
      updates.stop();
      timers.clear('rejoin', 'begin');
      joining++;
      host.decided();
    },
    refused(reason) {
      if (!engine) leaveOut(reason);
    },
    amend(message, revoked) {
      const changed = welcome && (welcome.policy !== message.policy || welcome.ice_servers !== message.ice_servers);
      welcome = message;
      if (changed) {
        applyPolicy();
        updates.soon();
      }
      tell({ ...message, revocations: revoked });
    },
    setResting(resting, atOnce) {
      if (links.resting === resting) return;
      links.resting = resting;
      if (resting) links.closeAll('idle', atOnce ? undefined : 2);
      updates.soon();
    },
    stop() {
      stopped = true;
      leave();
      timers.clearAll();
      host.decided();
      links.stop();
      engine?.stop();
      engine = undefined;
    },
    snapshot: () => ({ title: naming?.name, swarm: swarm.id && idToHex(swarm.id), viewers, seeds }),
  };
}
