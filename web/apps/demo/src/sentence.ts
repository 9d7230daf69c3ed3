import { formatBytes, percent } from './format';
import { remedy } from './reasons';

/** All that the sentence depends on. */
export interface Situation {
  /** Whether Leeway's script is on the page: `left-out` on purpose, `absent` because it did not load. */
  script: 'loading' | 'left-out' | 'absent' | 'present';
  state: 'connecting' | 'connected' | 'reconnecting' | 'off';
  /** Coded event that turned peer delivery off, or the last one that matters. */
  notice: { code: string; message: string; hint: string } | undefined;
  reason: string | undefined;
  /** Other viewers of the film, linked or not, as far as the page knows. */
  others: number;
  linkedViewers: number;
  linkedSeeds: number;
  /** Linked viewers that have given us bytes, and that we have given bytes. */
  serving: number;
  served: number;
  bytes: { origin: number; seed: number; peer: number };
  given: number;
  /** Milliseconds for which others were known and none was linked. */
  waitedMs: number;
  /** The player's fatal error. */
  failure: string | undefined;
}

export interface Sentence {
  /** Changes only when the situation does, not with every figure. */
  key: string;
  tone: 'calm' | 'good' | 'warn';
  text: string;
}

const words = ['No', 'One', 'Two', 'Three', 'Four', 'Five', 'Six', 'Seven', 'Eight', 'Nine'];

function count(n: number, one: string, many: string): string {
  return `${words[n] ?? n} ${n === 1 ? one : many}`;
}

/** After this time without a link the page says that viewers cannot find each other. */
const patienceMs = 10_000;

/** One plain sentence that says what is going on, and what to do where something is in the way. */
export function describe(s: Situation): Sentence {
  if (s.failure !== undefined) return { key: 'failure', tone: 'warn', text: s.failure };
  if (s.script === 'left-out') {
    return { key: 'left-out', tone: 'calm', text: 'Leeway is left out of this page. The origin serves every byte.' };
  }
  if (s.script === 'absent') {
    const text = 'Leeway is not on this page: its script did not load. The film plays from the origin alone.';
    return { key: 'absent', tone: 'warn', text };
  }
  if (s.state === 'off') return describeOff(s);
  if (s.script === 'loading' || s.state === 'connecting') {
    return { key: 'connecting', tone: 'calm', text: 'Looking for the tracker. The film is already on its way.' };
  }
  if (s.state === 'reconnecting') {
    const links = s.linkedViewers + s.linkedSeeds > 0 ? ', and the links stay up' : '';
    return { key: 'reconnecting', tone: 'warn', text: `The tracker is away; reconnecting. The film plays on${links}.` };
  }
  if (s.linkedViewers > 0) return describeLinked(s);
  if (s.others > 0) return describeUnlinked(s);
  if (s.linkedSeeds > 0 || s.bytes.seed > 0) {
    return { key: 'first', tone: 'calm', text: 'You are the first: the seed serves you. Add a viewer.' };
  }
  return { key: 'alone', tone: 'calm', text: 'You are the first: the origin serves you. Add a viewer.' };
}

function describeOff(s: Situation): Sentence {
  const why = remedy(s.reason) ?? [s.notice?.message, s.notice?.hint].filter(Boolean).join(' ');
  return {
    key: `off ${s.reason ?? s.notice?.code}`,
    tone: 'warn',
    text: `Leeway is off; the film plays. ${why}`.trim(),
  };
}

function describeLinked(s: Situation): Sentence {
  const total = s.bytes.origin + s.bytes.seed + s.bytes.peer;
  if (s.serving > 0) {
    const verb = count(s.serving, 'viewer serves', 'viewers serve');
    const share = percent(s.bytes.peer, total);
    const whom = s.serving === 1 ? 'it' : 'them';
    return {
      key: `served ${s.serving}`,
      tone: 'good',
      text: `${verb} you; ${share} % of your bytes came from ${whom}.`,
    };
  }
  if (s.served > 0) {
    const whom = count(s.served, 'viewer', 'viewers').toLowerCase();
    return {
      key: `serving ${s.served}`,
      tone: 'good',
      text: `You serve ${whom}: ${formatBytes(s.given)} given so far.`,
    };
  }
  const found = count(s.linkedViewers, 'viewer is', 'viewers are');
  return { key: 'linked', tone: 'good', text: `${found} linked. Pieces flow as soon as one has what another wants.` };
}

function describeUnlinked(s: Situation): Sentence {
  if (s.waitedMs < patienceMs) {
    return {
      key: 'finding',
      tone: 'calm',
      text: `${count(s.others, 'other viewer', 'other viewers')} here. Linking up …`,
    };
  }
  const advice =
    remedy(s.reason) ??
    'No link came up in ten seconds. Try without a VPN, a firewall, or an extension that blocks WebRTC; the film plays on.';
  return { key: `apart ${s.reason}`, tone: 'warn', text: `Viewers cannot find each other. ${advice}` };
}
