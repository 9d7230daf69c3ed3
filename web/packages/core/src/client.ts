/** The facade: one tracker, one session, any number of titles. Nothing here throws into the page. */

import type { Environment } from './environment.ts';
import { createEmitter, type LeewayEvents, type LeewayState, type Notice, type NoticeCode } from './events.ts';
import { createHandle } from './handle.ts';
import { isLocalAddress } from './link/address.ts';
import type { Playback, TitleSnapshot } from './playback.ts';
import type { Clock, Reason } from './ports.ts';
import type { SiteRules } from './segment/index.ts';
import { idToHex } from './session/base64.ts';
import type { RevocationMessage, Welcome } from './session/messages.ts';
import {
  createSession,
  type SessionCounters,
  type SessionHandlers,
  type TokenSource,
  type TrackerSession,
} from './session/session.ts';
import type { CreateEngine } from './title/options.ts';
import { createScript } from './title/script.ts';
import { createTitle, type Title } from './title.ts';
import { createCredit } from './transfer/credit.ts';

export interface LeewayOptions {
  /** The tracker's WebSocket address (`wss://…`; `https://…` is taken for it). */
  tracker: string;
  /** Site name; the tracker knows it by the page's origin if it is left out. */
  site?: string;
  /** Join token, or a callback that gives one: asked for the first, and for each next before the one in hand runs out. */
  token?: TokenSource;
  /** Explicit title for every manifest that is opened without one. */
  title?: string;
  /** `required`: nothing connects until `consent(true)`. */
  consent?: 'required' | 'given';
  /** False: nothing is fetched before the player asks for it, whatever the site allows. */
  prefetch?: boolean;
  /** False: nothing is kept on the viewer's disk, whatever the site allows. */
  disk?: boolean;
}

export interface LeewayStats {
  version: string;
  state: LeewayState;
  /** Own peer ID, hex, as other viewers' links name it; null before the first session. */
  self: string | null;
  /** What was last said about delivery being off or impaired. */
  notice: Notice | null;
  session: SessionCounters | null;
  titles: TitleSnapshot[];
}

/** The library, as a page or a player plug-in holds it. */
export interface Leeway {
  readonly state: LeewayState;
  /** The time base of all events: monotonic milliseconds. */
  readonly clock: Clock;
  /** Connects, unless consent is required and missing. */
  start(): void;
  /** Ends links, session, timers and listeners. Players go on with the origin. Final. */
  stop(): void;
  /** The viewer's consent, or its withdrawal (which stops everything until it is given again). */
  consent(given: boolean): void;
  /** Deletes what pages of this origin have kept on the viewer's disk. The withdrawal of consent does so, too. */
  clear(): Promise<void>;
  /** A player has opened a manifest. `file`: it is a file that is shared as it is, and a title of its own. */
  open(manifest: string, options?: { title?: string; file?: boolean }): Playback;
  on<K extends keyof LeewayEvents>(event: K, listener: (detail: LeewayEvents[K]) => void): () => void;
  stats(): LeewayStats;
  /** For plug-ins: something of ours failed and was caught. */
  caught(where: string, error: unknown): void;
  /** For plug-ins: says a coded notice, once a code. */
  notice(notice: Notice): void;
}

export interface ClientParts {
  environment: Environment;
  version: string;
  /** Fetches what engines are made with; the tracker has it if no other source does. */
  loadEngine(tracker: string): Promise<CreateEngine>;
  /** Deletes what is kept on the disk; the tracker has the script for it if no other source does. */
  clear(tracker: string): Promise<void>;
  rules(welcome: Welcome): SiteRules;
}

const restMs = 60_000;
const unreachableAfter = 3;
const passing = /^(not-(introduced|joined)|draining|overloaded|rate-limited)$/;

export function createClient(o: LeewayOptions, parts: ClientParts): Leeway {
  const { environment, version } = parts;
  const { clock } = environment;
  const credit = createCredit(clock);
  const titles = new Map<string, Title>();
  const said = new Set<string>();
  const events = createEmitter<LeewayEvents>((error) => caught('listener', error));
  let session: TrackerSession | undefined;
  let welcome: Welcome | undefined;
  let state: LeewayState = 'idle';
  let consented = o.consent !== 'required';
  let started = false;
  let lastNotice: Notice | null = null;
  let releases: (() => void)[] = [];
  let restTimer = 0;
  const script = createScript(() => parts.loadEngine(o.tracker));

  const notice = (detail: Notice) => {
    lastNotice = detail;
    if (said.has(detail.code)) return;
    said.add(detail.code);
    events.emit('notice', detail);
  };

  const say = (code: NoticeCode, message: string, hint: string) => notice({ code, message, hint });

  const caught = (where: string, error: unknown) =>
    say('internal', `A defect in ${where}: ${(error as Error | null)?.message ?? error}`, 'Please report it.');

  const guard = (where: string, f: () => void) => {
    try {
      f();
    } catch (error) {
      caught(where, error);
    }
  };

  const setState = (next: LeewayState) => {
    if (state === next) return;
    state = next;
    events.emit('state', { state });
  };

  const each = (f: (title: Title) => void) => {
    for (const title of [...titles.values()]) guard('title', () => f(title));
  };

  /** A minute of paused and hidden closes the links; a look at the page, or play, brings them back. */
  const watchRest = () => {
    const paused = [...titles.values()].every(({ handles }) => [...handles].every((handle) => handle.paused));
    clock.clearTimer(restTimer);
    if (!paused || !environment.hidden()) each((title) => title.setResting(false));
    else restTimer = clock.setTimer(() => each((title) => title.setResting(true)), restMs);
  };

  const amend = (change: Partial<Welcome>, revoked: RevocationMessage[] = []) => {
    const next = { ...welcome!, ...change };
    welcome = next;
    each((title) => title.amend(next, revoked));
  };

  const of = (swarm: string, f: (title: Title) => void) =>
    each((title) => {
      if (title.owns(swarm)) f(title);
    });

  /** No session will come. */
  const giveUp = (reason: Reason) => {
    setState('off');
    each((title) => {
      title.lost();
      title.refused(reason);
    });
  };

  const handlers: SessionHandlers = {
    welcome(message) {
      welcome = message;
      said.delete('tracker-unreachable');
      if (lastNotice?.code === 'tracker-unreachable') lastNotice = null;
      setState('ready');
      each((title) => title.enter(message));
    },
    introduce: ({ swarm, peers }) => of(swarm, (title) => title.links.introduce(peers)),
    signal(message) {
      let one: Title | undefined;
      of(message.swarm, (title) => {
        one ??= title;
        // An offer is for one link, however many titles of the page are in the swarm.
        if (title === one || message.kind !== 'offer') title.links.signal(message);
      });
    },
    keys: amend,
    ice: amend,
    revoke: ({ revocations }) => amend({ revocations: [...welcome!.revocations, ...revocations] }, revocations),
    policy: amend,
    error({ code, message, hint }) {
      // These pass by themselves: a peer or the title has just left, or the tracker is about to close the socket.
      if (passing.test(code)) return;
      say('tracker-error', `The tracker reports ${code}. ${message}`, hint);
    },
    lost(attempts) {
      setState('waiting');
      if (attempts >= unreachableAfter) {
        say('tracker-unreachable', `The tracker at ${o.tracker} does not answer.`, 'Is it up?');
      }
      each((title) => title.lost());
    },
    refused({ code, message, hint }) {
      const token = /token/.test(code);
      say(token ? 'token-refused' : 'tracker-refused', `The tracker refused this page (${code}). ${message}`, hint);
      giveUp(token ? 'needs-token' : 'policy');
    },
    forbidden(why) {
      say(
        'tracker-blocked',
        `This page may not connect to ${o.tracker} (${why}).`,
        'An https page needs wss:, and a policy connect-src.',
      );
      giveUp('policy');
    },
  };
  for (const name of Object.keys(handlers) as (keyof SessionHandlers)[]) {
    const handle = handlers[name] as (detail: unknown) => void;
    handlers[name] = (detail: unknown) => guard(name, () => handle(detail));
  }

  /** Of a page that is put away or frozen nothing runs until it is back: no peer is to wait for it meanwhile. */
  const sleep = (asleep: boolean) => {
    if (asleep) {
      each((title) => {
        title.sendStats(true);
        title.setResting(true, true);
      });
      session!.suspend();
    } else {
      watchRest();
      session!.start();
    }
  };

  const begin = () => {
    const missing = environment.missing();
    const url = trackerUrl(o.tracker);
    if (missing === 'insecure-context')
      say(missing, 'This page is no secure context.', 'Serve it over https or from localhost.');
    else if (missing) say(missing, `There is no ${missing.slice(3)} here.`, 'The origin serves this viewer.');
    else if (!url || (environment.onPublicHost() && isLocalAddress(url.hostname))) {
      say(
        'private-tracker',
        'The tracker address is no URL, or private on a public page.',
        'Give a public data-tracker="wss://…".',
      );
    } else {
      session = createSession({
        ...o,
        ...environment,
        url: url.href,
        client: `leeway-js/${version}`,
        handlers,
      });
      releases = [
        environment.onSleep((asleep) => guard('sleep', () => sleep(asleep))),
        environment.onForbidden(({ blockedURI, effectiveDirective }) => {
          if (blockedURI.startsWith(url.origin)) guard('policy', () => session!.forbid(effectiveDirective));
          else if (blockedURI === 'blob' && effectiveDirective === 'worker-src')
            say('worker-blocked', 'This page may have no worker: hidden, it sends slowly.', 'Add blob: to worker-src.');
        }),
        environment.onVisibility(() => guard('visibility', watchRest)),
      ];
      setState('connecting');
      session.start();
      return;
    }
    setState('off');
  };

  const end = () => {
    clock.clearTimer(restTimer);
    for (const release of releases) release();
    releases = [];
    each((title) => title.stop());
    titles.clear();
    session?.stop();
    session = welcome = undefined;
    said.clear();
  };

  const titleFor = (key: string, manifest: string, explicit?: string, file?: boolean): Title | undefined => {
    const known = titles.get(key);
    if (known || !session || session.state === 'refused') return known;
    const title = createTitle({
      ...parts,
      ...o,
      manifest,
      title: explicit,
      file,
      session,
      owned: (...swarm) => [...titles.values()].some((title) => title.owns(...swarm)),
      credit,
      events,
      script,
      notice: say,
      caught,
    });
    titles.set(key, title);
    if (session.state === 'ready' && welcome) title.enter(welcome);
    return title;
  };

  const client: Leeway = {
    get state() {
      return state;
    },
    clock,
    start() {
      if (state === 'stopped' || session) return;
      started = true;
      if (consented) guard('start', begin);
      else say('consent-missing', 'Peer delivery waits for consent.', 'Call leeway.consent(true).');
    },
    stop() {
      if (state === 'stopped') return;
      end();
      setState('stopped');
      events.clear();
    },
    consent(given) {
      if (consented === given || state === 'stopped') return;
      consented = given;
      if (!given) {
        // Before the welcome it is not known whether the site lets pages keep something.
        if (!welcome || welcome.policy.disk_bytes) void client.clear();
        end();
        setState('idle');
      } else if (started) client.start();
    },
    clear: () => parts.clear(o.tracker).catch((error) => caught('clear', error)),
    open(manifest, options) {
      const { title: explicit = o.title, file } = options ?? {};
      // Two players of one manifest share a membership; the fragment is no part of it.
      const key = `${manifest.split('#')[0]}\n${explicit ?? ''}`;
      return createHandle({
        manifest,
        find: () => titleFor(key, manifest, explicit, file),
        released(title) {
          if (title.handles.size > 0) return;
          if (titles.get(key) === title) titles.delete(key);
          title.stop();
        },
        pausedChanged: () => guard('paused', watchRest),
      });
    },
    on: (event, listener) => events.on(event, listener),
    stats: () => ({
      version,
      state,
      self: welcome ? idToHex(welcome.session) : null,
      notice: lastNotice,
      session: session?.counters ?? null,
      titles: [...titles.values()].map((title) => title.snapshot()),
    }),
    caught,
    notice,
  };
  return client;
}

function trackerUrl(text: string): URL | undefined {
  try {
    const url = new URL(text.replace(/^http/i, 'ws'));
    return /^wss?:$/.test(url.protocol) ? url : undefined;
  } catch {
    return undefined;
  }
}
