/** What getStats can tell of a link: which path it took, and why it never opened. */

import type { LinkPath, Reason } from '../ports.ts';
import type { FailReason } from '../session/messages.ts';

type Stat = Record<string, unknown> & { id: string; type: string };

async function stats(connection: RTCPeerConnection): Promise<Stat[]> {
  const all: Stat[] = [];
  (await connection.getStats()).forEach((stat: Stat) => {
    all.push(stat);
  });
  return all;
}

/** The path of the selected candidate pair; undefined while there is none. */
export async function pathOf(connection: RTCPeerConnection): Promise<LinkPath | undefined> {
  const all = await stats(connection);
  const find = (id: unknown) => all.find((stat) => stat.id === id);
  const transport = all.find((stat) => stat.type === 'transport' && stat.selectedCandidatePairId);
  // Firefox has no transport entry that names the pair.
  const pair =
    find(transport?.selectedCandidatePairId) ??
    all.find((stat) => stat.type === 'candidate-pair' && (stat.selected || stat.nominated));
  if (!pair) return undefined;
  const kinds = [pair.localCandidateId, pair.remoteCandidateId].map((id) => find(id)?.candidateType);
  return kinds.includes('relay') ? 'relay' : 'direct';
}

export interface AttemptFacts {
  /** How many remote candidates were handed to the connection, and whether a server's view of the other side was among them. */
  added: number;
  reflexive: boolean;
  /** Remote candidates left out because the page may not reach the viewer's own network. */
  stripped: number;
  /** The page lacks the permission for the local network. */
  gated: boolean;
  /** The configuration has a STUN or TURN server over UDP. */
  udpServers: boolean;
}

export interface Diagnosis {
  fail: FailReason;
  /** What it means for segments, where it is the network's doing. */
  reason?: Reason;
  /** The other side broke the protocol. */
  broken?: boolean;
}

/** Why an attempt did not open. A guess from what the browser shows; `timeout` where it shows nothing. */
export async function diagnose(connection: RTCPeerConnection, facts: AttemptFacts): Promise<Diagnosis> {
  const all = await stats(connection);
  const of = (type: string) => all.filter((stat) => stat.type === type);
  const remotesSeen = of('remote-candidate').length;
  const state = connection.iceConnectionState;
  if (facts.gated) {
    // Chromium keeps gated candidates from ICE without a word: the state stays new and never fails.
    const silent = state === 'new' && facts.added > 0 && remotesSeen === 0;
    const nothingLeft = facts.stripped > 0 && facts.added === 0;
    if (silent || nothingLeft) return { fail: 'lna-denied', reason: 'lna-denied' };
  }
  const locals = of('local-candidate');
  const local = (type: string) => locals.filter((stat) => stat.candidateType === type);
  // Chromium goes on asking for 40 s before it says that no more candidates come; an attempt is over sooner.
  if (facts.udpServers && local('srflx').length === 0 && local('relay').length === 0) {
    return { fail: 'udp-blocked', reason: 'udp-blocked' };
  }
  // One local port that two servers see as two: the address translation depends on the destination. Which port it was is not
  // said by every browser: not in Firefox, and 0 where the page may not know its own addresses.
  const reflexive = local('srflx');
  const bases = reflexive.map((stat) => stat.relatedPort).filter(Boolean);
  const symmetric = new Set(bases).size < bases.length;
  if (symmetric || (reflexive.length > 0 && facts.reflexive && state !== 'new')) {
    return { fail: 'timeout', reason: 'symmetric-nat' };
  }
  return { fail: 'timeout' };
}
