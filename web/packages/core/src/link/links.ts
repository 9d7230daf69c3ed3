/**
 * The links of one swarm: offers to the peers that the tracker introduces, answers to offers, bounds, and a
 * memory of the peers that are not to be linked again.
 */

import type { Environment } from '../environment.ts';
import type { Greeting, LinkCloseReason, PeerLink, PeerRole, Reason } from '../ports.ts';
import { idToHex, toBase64url } from '../session/base64.ts';
import type {
  FailReason,
  IceServerMessage,
  Introduce,
  Joined,
  Policy,
  ReadyOffer,
  SignalBody,
  SignalIn,
} from '../session/messages.ts';
import type { Inspection } from './inspect.ts';
import { createLink, type Link } from './link.ts';

/** More links than this are never wanted at once by one message, whatever the policy (spec: want ≤ 32). */
const wantBound = 32;
/** Attempts under way at once; a burst of introductions must not open dozens of sockets. */
const attemptsBound = 8;
/** For so long a peer that fell silent is not linked again, and a further offer of one that has just made one not heard. */
const silentMs = 60_000;
const offersMs = 2_000;
/** Offers that are heard at once, and every second: what is beyond is dropped. Newcomers to a popular viewer are fewer. */
const offersAtOnce = 64;
const offersPerSecond = 16;
/** Signals kept until links may begin. */
const keptSignals = 64;

export interface LinksOptions {
  environment: Pick<Environment, 'clock' | 'createConnection' | 'randomBytes' | 'localAccess'>;
  signal(to: string, link: string, body: SignalBody): void;
  inspection(): Inspection | undefined;
  /** What answers may say ahead of their links. */
  greeting(wanted: string[]): Greeting | undefined;
  /** An open link, for the engine. */
  opened(link: PeerLink): void;
  failed(reason: FailReason): void;
  /** Links or attempts came or went. */
  changed(): void;
  /** The engine failed with a link. */
  caught(where: string, error: unknown): void;
}

export interface LinkSettings {
  /** Own peer ID, hex. */
  self: string;
  iceServers: IceServerMessage[];
  policy: Policy;
  maxLinks: number;
}

interface Entry {
  link: Link;
  /** The peer in the tracker's spelling; empty while a ready offer has found no peer. */
  to: string;
  offered: boolean;
}

export interface Links {
  /** While true no link is wanted. */
  resting: boolean;
  readonly open: number;
  readonly opening: number;
  /** A seed that was introduced may still be linked; or a viewer, if those serve by themselves, and there is no link yet. */
  coming(viewers: boolean): boolean;
  /** How many further links this viewer would take. */
  readonly want: number;
  /** Why no link opens, when two attempts in a row were blocked in the same way and none is open. */
  readonly blocked: Reason | null;
  configure(settings: LinkSettings): void;
  /** Links may be made from now on: first to those that were named until then, with offers that ask for certificates. */
  begin(wanted: string[]): void;
  /** Makes offers for whomever the tracker picks. */
  prepare(count: number): Promise<unknown>;
  /** Those offers, which ask for the certificates of these segments. */
  ready(wanted: string[]): ReadyOffer[];
  /** The peers that got them. */
  offered(list: NonNullable<Joined['offered']>): void;
  /** Offers a link to each peer that the tracker named. */
  introduce(peers: Introduce['peers'], wanted?: string[]): void;
  /** A signal from a peer. */
  signal(message: SignalIn): void;
  /** Never links to this peer again. */
  avoid(peer: string): void;
  closeAll(reason: LinkCloseReason, bye?: number): void;
  stop(): void;
}

export function createLinks(o: LinksOptions): Links {
  const { environment } = o;
  const entries = new Map<string, Entry>();
  /** Until when a peer is not linked. */
  const avoided = new Map<string, number>();
  /** Until when a peer that was turned down is not told so again. */
  const told = new Map<string, number>();
  /** When as many offers as ever may be heard at once. */
  let quiet = 0;
  let settings: LinkSettings | undefined;
  let stopped = false;
  /** Peers that the tracker named before links may be made, and the signals that came from them. */
  let named: Introduce['peers'] | undefined = [];
  let kept: SignalIn[] = [];
  /** What the last failed attempts say about the network, while no link is open. */
  let blame: { reason: Reason; times: number } | undefined;

  const count = (state: Link['state']) =>
    [...entries.values()].filter(({ to, link }) => to && link.state === state).length;
  const find = (hex: string) => [...entries.values()].find(({ link }) => link.peer === hex);

  const holds = (list: Map<string, number>, hex: string) => list.get(hex)! > environment.clock.now();
  const hold = (list: Map<string, number>, hex: string, ms: number) => {
    // Most peers never come back, so nothing else would forget them.
    for (const peer of list.keys()) if (!holds(list, peer)) list.delete(peer);
    const until = environment.clock.now() + ms;
    if (!(list.get(hex)! > until)) list.set(hex, until);
  };
  const avoid = (hex: string, ms: number) => hold(avoided, hex, ms);
  const avoids = (hex: string) => holds(avoided, hex);

  /** Whether one more offer is heard now. */
  const hears = () => {
    const now = environment.clock.now();
    const next = Math.max(quiet, now) + 1_000 / offersPerSecond;
    const heard = next <= now + (1_000 * offersAtOnce) / offersPerSecond;
    if (heard) quiet = next;
    return heard;
  };

  const forget = (link: Link) => {
    if (entries.delete(link.id)) o.changed();
  };

  const discard = (entry: Entry) => {
    entries.delete(entry.link.id);
    entry.link.close('closed');
  };

  /** A connection for one attempt, which offers unless it has the link ID of an offer. Undefined if the browser does not give one. */
  const create = (to: string, hex: string, role: PeerRole, theirs?: string): Entry | undefined => {
    const id = theirs ?? toBase64url(environment.randomBytes(16));
    const { policy } = settings!;
    const relayOnly = policy.role === 'relay-only' && role === 'viewer';
    const iceServers = iceServersFor(settings!, role);
    let connection: RTCPeerConnection;
    try {
      connection = environment.createConnection({ iceServers, iceTransportPolicy: relayOnly ? 'relay' : 'all' });
    } catch {
      return undefined;
    }
    const link = createLink({
      id,
      peer: hex,
      role,
      connection,
      clock: environment.clock,
      gated: environment.localAccess().then((granted) => !granted || policy.local === 'never'),
      asks: policy.local === 'ask',
      udpServers: iceServers.some(({ urls }) => urls.some(overUdp)),
      relayOnly,
      inspection: o.inspection,
      greeting: o.greeting,
      signal: (body) => {
        if (entry.to) o.signal(entry.to, id, body);
      },
      opened() {
        blame = undefined;
        try {
          o.opened(link);
        } catch (error) {
          o.caught('addLink', error);
          link.close('protocol-error');
        }
        o.changed();
      },
      failed({ fail, reason, broken }) {
        forget(link);
        // No peer wanted it, so no link has failed.
        if (!entry.to) return;
        if (broken) links.avoid(link.peer);
        if (reason) blame = { reason, times: blame?.reason === reason ? blame.times + 1 : 1 };
        o.failed(fail);
      },
      closed(reason) {
        if (reason === 'stalled') avoid(link.peer, silentMs);
        forget(link);
      },
    });
    const entry: Entry = { to, offered: !theirs, link };
    entries.set(id, entry);
    o.changed();
    return entry;
  };

  const answer = ({ from, role, link: id, sdp, plan, early, wanted }: SignalIn & { kind: 'offer' }, hex: string) => {
    const refuse = (reason: FailReason) => {
      if (holds(told, hex)) return;
      hold(told, hex, offersMs);
      o.signal(from, id, { kind: 'fail', reason });
    };
    const s = settings;
    const known = find(hex);
    if (
      !s ||
      stopped ||
      avoids(hex) ||
      hex === s.self ||
      s.policy.role === 'off' ||
      // Both offered: the offer of the lower peer ID stands, on both sides.
      (known?.offered && known.link.state === 'opening' && s.self < hex)
    ) {
      // Trackers do not introduce a pair again of which one has refused the other. All but a banned peer may come later.
      refuse(avoided.get(hex) === Number.POSITIVE_INFINITY ? 'refused' : 'busy');
      return;
    }
    avoid(hex, offersMs);
    if (known) {
      // The other side has begun anew, so an old link is dead there.
      known.link.onClose?.('closed');
      discard(known);
    }
    const made = links.want > 0 && create(from, hex, role, id);
    if (made) made.link.answer(sdp, plan, early, wanted);
    else refuse('busy');
  };

  const links: Links = {
    resting: false,
    get open() {
      return count('open');
    },
    get opening() {
      return count('opening');
    },
    coming(viewers) {
      const serves = ({ role }: { role: PeerRole }) => role === 'seed' || (viewers && !links.open);
      return (
        !!named?.some(serves) ||
        [...entries.values()].some(({ to, link }) => to && serves(link) && link.state === 'opening')
      );
    },
    get want() {
      const s = settings;
      if (!s || stopped || links.resting || s.policy.role === 'off') return 0;
      return Math.max(0, Math.min(wantBound, s.maxLinks - entries.size));
    },
    get blocked() {
      return links.open === 0 && blame && blame.times >= 2 ? blame.reason : null;
    },
    configure(next) {
      settings = next;
      if (next.policy.role === 'off') links.closeAll('policy', 8);
    },
    begin(wanted) {
      const [peers, signals] = [named, kept];
      named = undefined;
      kept = [];
      if (peers) links.introduce(peers, wanted);
      signals.forEach(links.signal);
    },
    prepare: (count) =>
      Promise.all(
        // A viewer that is relayed to viewers alone has to know the peer that it offers to.
        Array.from({ length: settings?.policy.role === 'relay-only' ? 0 : Math.min(count, links.want) }, () =>
          create('', '', 'viewer')?.link.prepare(),
        ),
      ),
    ready: (wanted) =>
      [...entries.values()].flatMap(({ to, link }) => {
        const offer = to ? undefined : link.prepared(wanted);
        return offer ? [{ link: link.id, ...offer }] : [];
      }),
    offered(list) {
      for (const { link, peer, role } of list) {
        const entry = entries.get(link);
        const hex = idToHex(peer);
        if (!entry || entry.to) continue;
        if (hex === settings?.self || avoids(hex) || find(hex)) discard(entry);
        else {
          entry.to = peer;
          entry.link.meet(hex, role);
        }
      }
      o.changed();
    },
    introduce(peers, wanted = []) {
      if (named) {
        named = [...named, ...peers].slice(-wantBound);
        o.changed();
        return;
      }
      for (const { peer, role } of peers) {
        const hex = idToHex(peer);
        const known = find(hex);
        // It may have fallen silent, and gives way then.
        known?.link.onNamed?.(() => links.introduce([{ peer, role }]));
        if (known || hex === settings?.self || avoids(hex)) continue;
        if (links.want === 0 || links.opening >= attemptsBound) continue;
        create(peer, hex, role)?.link.offer(wanted);
      }
    },
    signal(message) {
      if (named) {
        if (kept.length < keptSignals) kept.push(message);
        return;
      }
      const entry = entries.get(message.link);
      if (message.kind === 'offer') {
        // The same one again was answered, or is about to be.
        if (!entry && hears()) answer(message, idToHex(message.from));
      } else if (entry?.to === message.from) {
        // Only the peer that the link is with may speak about it.
        entry.link.receive(message);
      }
    },
    avoid: (peer) => avoid(peer, Number.POSITIVE_INFINITY),
    closeAll(reason, bye) {
      for (const { link } of [...entries.values()]) {
        if (link.state === 'open') link.onClose?.(reason);
        link.close(reason, bye);
      }
      entries.clear();
      if (named) named = [];
      kept = [];
      blame = undefined;
      if (!stopped) o.changed();
    },
    stop() {
      stopped = true;
      links.closeAll('shutdown', 0);
    },
  };
  return links;
}

/** Without relays to seeds: the origin costs less than a seed behind one. */
function iceServersFor({ iceServers, policy }: LinkSettings, role: PeerRole): IceServerMessage[] {
  const relays = policy.relay === 'allow' && role !== 'seed';
  return iceServers
    .map((server) => ({ ...server, urls: server.urls.filter((url) => relays || !/^turns?:/i.test(url)) }))
    .filter((server) => server.urls.length > 0);
}

function overUdp(url: string): boolean {
  return /^(stun|turn):/i.test(url) && !/transport=tcp/i.test(url);
}
