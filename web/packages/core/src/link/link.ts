/**
 * One link: one RTCPeerConnection between this viewer and one peer, from the first signal to the close. It is a
 * PeerLink for the engine once control and data channels are open.
 */

import type { Clock, Greeting, LinkCloseReason, LinkPath, PeerLink, PeerRole } from '../ports.ts';
import { fromBase64url, hexToId, idToHex, toBase64url } from '../session/base64.ts';
import type { PlanMessage, ReadyOffer, SignalBody } from '../session/messages.ts';
import { isLocalAddress } from './address.ts';
import type { Candidate } from './candidates.ts';
import { createChannels } from './channels.ts';
import type { AttemptFacts, Diagnosis } from './diagnose.ts';
import type { Inspection } from './inspect.ts';
import { agree, defaultPlan } from './plan.ts';
import { createTrickle } from './trickle.ts';

/** From the first signal to open channels. */
export const establishMs = 12_000;
const pathIntervalMs = 10_000;
const statsTimeoutMs = 1_000;
/** Time for a last `bye` to leave before the connection goes. */
const byeMs = 150;
/**
 * Bytes of messages kept until the engine has set its callbacks, of which each counts as some at least: 256 short ones, 32 of the longest. A
 * peer that has this side's `hello` from the answer asks and announces meanwhile, twenty times a second and more, and a busy thread comes to
 * the statistics behind all that waits for it.
 */
const backlogBytes = 2 ** 21;
const leastBytes = 2 ** 13;
const byeType = 0x50;

export interface LinkOptions {
  /** The link ID of the signals. */
  id: string;
  /** The other side, hex. */
  peer: string;
  role: PeerRole;
  connection: RTCPeerConnection;
  clock: Clock;
  /** Whether the page may not reach the viewer's own network, as things stand. */
  gated: Promise<boolean>;
  /** Then it is the browser that keeps private and mDNS candidates of the other side out, and may ask the viewer; else they are left out here. */
  asks: boolean;
  /** The configuration has a STUN or TURN server over UDP. */
  udpServers: boolean;
  /** Paths can only be relayed (policy). */
  relayOnly: boolean;
  /** What tells the path, and why there is none, and reads what the other side signals; once there is an engine. */
  inspection(): Inspection | undefined;
  signal(body: SignalBody): void;
  /** What an answer may say ahead of the channels; undefined: nothing. */
  greeting(wanted: string[]): Greeting | undefined;
  opened(link: Link): void;
  /** The attempt failed; the connection is closed. */
  failed(diagnosis: Diagnosis): void;
  /** An open link has closed, by either side. */
  closed(reason: LinkCloseReason): void;
}

export interface Link extends PeerLink {
  peer: string;
  role: PeerRole;
  maxMessage: number;
  greeted?: string[];
  wanted?: string[];
  readonly id: string;
  readonly state: 'opening' | 'open' | 'closed';
  /** Makes and signals the offer, which asks for certificates. */
  offer(wanted?: string[]): void;
  /** Makes an offer for a peer that is not known yet. */
  prepare(): Promise<unknown>;
  /** That offer, with the candidates so far; undefined while there is none. It asks for certificates. */
  prepared(wanted: string[]): Omit<ReadyOffer, 'link'> | undefined;
  /** It is on its way to a peer: from now on the link has a peer. */
  meet(peer: string, role: PeerRole): void;
  /** Answers an offer, which takes a greeting if it is early. */
  answer(sdp: string, plan: PlanMessage, early?: boolean, wanted?: string[]): void;
  /** A signal of the other side about this link. Offers are not for here. */
  receive(body: SignalBody): void;
}

export function createLink(o: LinkOptions): Link {
  const { connection, clock } = o;
  const facts: AttemptFacts = {
    added: 0,
    reflexive: false,
    stripped: 0,
    gated: false,
    udpServers: o.udpServers,
  };
  let state: Link['state'] = 'opening';
  let path: LinkPath = o.relayOnly ? 'relay' : 'direct';
  let offered = defaultPlan.data;
  let answered = false;
  /** Operations on the connection run one after the other. */
  let chain: Promise<unknown> = o.gated.then(
    (gated) => {
      facts.gated = gated;
    },
    () => {
      facts.gated = true;
    },
  );
  let backlog: (() => void)[] | undefined = [];
  let backlogRoom = backlogBytes;
  /** What the answer said ahead of the channels: the first control messages. */
  let said: string[] = [];
  /** Asked for while the channels open, which would wait for it. */
  let pathKnown: Promise<LinkPath | undefined> | undefined;
  let timer = 0;

  const deliver = ({ length }: Uint8Array, f: () => void) => {
    if (!backlog) return f();
    backlogRoom -= Math.max(length, leastBytes);
    if (backlogRoom < 0) end('protocol-error');
    else backlog.push(f);
  };

  const channels = createChannels({
    ready: () => void ready(),
    control: (message) => deliver(message, () => link.onControl?.(message)),
    data: (message) => deliver(message, () => link.onData?.(message)),
    ack: (message) => link.onAck?.(message),
    drain: () => link.onDrain?.(),
    ended: (reason) => end(reason),
  });

  /** Lets go of everything: timers, handlers, the connection (after a moment, for a last message to leave). */
  const letGo = (delayMs = 0) => {
    state = 'closed';
    clock.clearTimer(timer);
    channels.dispose();
    backlog = undefined;
    connection.onicecandidate = connection.ondatachannel = connection.onconnectionstatechange = null;
    if (delayMs > 0) clock.setTimer(() => connection.close(), delayMs);
    else connection.close();
  };

  const fail = (diagnosis: Diagnosis, tell = true) => {
    if (state !== 'opening') return;
    if (tell) o.signal({ kind: 'fail', reason: diagnosis.fail });
    letGo();
    o.failed(diagnosis);
  };

  /** The link ended from outside: an open one is reported, an opening one has failed. */
  const end = (reason: LinkCloseReason) => {
    if (state === 'opening' && reason === 'closed' && connection.connectionState !== 'connected') {
      return void giveUp(); // in Firefox the channels close before a connection that never came about
    }
    // One that could be reached and leaves says nothing of the way between the two.
    fail({ fail: reason === 'closed' ? 'gone' : 'refused', broken: reason === 'protocol-error' });
    if (state === 'closed') return;
    letGo();
    o.closed(reason);
    link.onClose?.(reason);
  };

  /** What the browser's statistics say; the fallback if they say nothing in time. */
  const ask = <T>(question: Promise<T> | undefined, fallback: T) =>
    new Promise<T>((resolve) => {
      const late = clock.setTimer(() => resolve(fallback), statsTimeoutMs);
      Promise.resolve(question)
        .catch(() => {})
        .then((found) => {
          clock.clearTimer(late);
          resolve(found ?? fallback);
        });
    });

  /** Time is up, or ICE failed: says why as far as the browser shows it. */
  const giveUp = async (tell?: boolean) => {
    const why = await ask(o.inspection()?.diagnose(connection, facts), { fail: 'timeout' });
    // No peer answered the offer: that says nothing of the way between the two.
    fail(why.fail === 'timeout' && !answered ? { ...why, fail: 'gone' } : why, tell);
  };

  /** Whether it could be seen. */
  const lookPath = async () => {
    const seen = await ask(o.inspection()?.pathOf(connection), undefined);
    path = seen ?? path;
    return seen;
  };

  const watchPath = async () => {
    await lookPath();
    if (state === 'open') timer = clock.setTimer(() => void watchPath(), pathIntervalMs);
  };

  const ready = async () => {
    (await pathKnown) ?? (await lookPath());
    if (state !== 'opening') return;
    state = 'open';
    // Not every browser has it; there what was measured of the old path ages out.
    const ice = connection.sctp?.transport.iceTransport;
    if (ice) {
      ice.onselectedcandidatepairchange = async () => {
        // What comes by a relay is counted apart from the start.
        await lookPath();
        link.onMoved?.();
      };
    }
    clock.clearTimer(timer);
    void watchPath();
    o.opened(link);
    for (const message of said) link.onControl?.(fromBase64url(message)!);
    const kept = backlog ?? [];
    backlog = undefined;
    for (const f of kept) f();
  };

  /** Queues an operation; its failure ends the attempt. */
  const run = (operation: () => unknown) => {
    chain = chain.then(async () => {
      try {
        if (state !== 'closed') await operation();
      } catch {
        fail({ fail: 'refused' });
      }
    });
  };

  const take = (plan: PlanMessage): PlanMessage | undefined => {
    const agreed = agree(plan, defaultPlan);
    if (!agreed) fail({ fail: 'plan' });
    else {
      link.maxMessage = agreed.message;
      channels.agree(agreed.data, agreed.message);
    }
    return agreed;
  };

  /** Whether a candidate of the other side may be used. */
  const usable = ({ address, type }: Candidate) => {
    const kept = !facts.gated || o.asks || !isLocalAddress(address);
    if (kept) facts.added++;
    else facts.stripped++;
    facts.reflexive ||= kept && type === 'srflx';
    return kept;
  };

  const describe = async (type: RTCSdpType, sdp: string) => {
    await connection.setRemoteDescription({ type, sdp: o.inspection()!.readDescription(sdp, usable) });
  };

  const addCandidate = async (body: SignalBody) => {
    if (body.kind !== 'candidate') return;
    const candidate = o.inspection()!.readCandidate(body.candidate, usable);
    // There is one section. A candidate that the browser does not take is one path fewer.
    if (candidate) await connection.addIceCandidate({ candidate, sdpMLineIndex: 0 }).catch(() => {});
  };

  const trickle = createTrickle(connection, o.signal, (body) => run(() => addCandidate(body)));

  const prepare = async () => {
    channels.create(connection, defaultPlan.data);
    await connection.setLocalDescription(await connection.createOffer());
  };

  const prepared = (wanted: string[]) => ({
    sdp: connection.localDescription!.sdp,
    plan: defaultPlan,
    early: true,
    wanted: wanted.length ? wanted.map(hexToId) : undefined,
  });

  connection.ondatachannel = ({ channel }) => channels.accept(channel, offered);
  connection.onconnectionstatechange = () => {
    const { connectionState } = connection;
    if (connectionState === 'connected') pathKnown ??= lookPath();
    if (connectionState !== 'failed' && connectionState !== 'closed') return;
    if (state === 'opening') void giveUp();
    else end(connectionState);
  };
  timer = clock.setTimer(() => void giveUp(), establishMs);

  const link: Link = {
    id: o.id,
    peer: o.peer,
    role: o.role,
    maxMessage: defaultPlan.message,
    get state() {
      return state;
    },
    path: () => path,
    offer(wanted = []) {
      link.wanted = wanted;
      run(async () => {
        await prepare();
        o.signal({ kind: 'offer', ...prepared(wanted) });
        trickle.letOut();
      });
    },
    prepare() {
      run(prepare);
      return chain;
    },
    prepared(wanted) {
      if (state !== 'opening' || !connection.localDescription) return;
      // Those are in the description.
      trickle.described();
      link.wanted = wanted;
      return prepared(wanted);
    },
    meet(peer, role) {
      link.peer = peer;
      link.role = role;
      trickle.letOut();
    },
    answer(sdp, plan, early, wanted = []) {
      offered = plan.data;
      // What answers an answer has nothing to say.
      answered = true;
      const agreed = take(plan);
      run(async () => {
        await describe('offer', sdp);
        await connection.setLocalDescription(await connection.createAnswer());
        const greeting = early ? o.greeting(wanted.map(idToHex)) : undefined;
        link.greeted = greeting?.held;
        const said = greeting?.said.map(toBase64url);
        o.signal({ kind: 'answer', sdp: connection.localDescription!.sdp, plan: agreed!, said });
        trickle.letOut();
        trickle.catchUp();
      });
    },
    receive(body) {
      if (body.kind === 'answer') {
        if (answered) return;
        answered = true;
        said = body.said ?? [];
        take(body.plan);
        run(async () => {
          await describe('answer', body.sdp);
          trickle.catchUp();
        });
      } else if (body.kind === 'fail') {
        // What the other side waited for in vain may have been kept from it here.
        if (body.reason === 'timeout') void giveUp(false);
        else fail({ fail: body.reason }, false);
      } else trickle.remote(body);
    },
    sendControl(message) {
      if (state === 'open') channels.sendControl(message);
    },
    controlRoom: () => state === 'open' && channels.controlRoom(),
    sendData: (message) => state === 'open' && channels.sendData(message),
    waiting: channels.waiting,
    sendBackground: (message) => state === 'open' && channels.sendBackground(message),
    sendAck(message) {
      if (state === 'open') channels.sendAck(message);
    },
    close(reason, bye) {
      const was = state;
      if (was === 'closed') return;
      const farewell = was === 'open' && bye !== undefined;
      if (farewell) channels.sendControl(new Uint8Array([byeType, bye]));
      letGo(farewell ? byeMs : 0);
      if (was === 'open') o.closed(reason);
    },
  };
  return link;
}
