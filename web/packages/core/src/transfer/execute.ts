/** Does what the schedule says; requests to one peer travel together. */

import { inMessages } from '../protocol/limits.ts';
import type { Action } from '../schedule/action.ts';
import { pieceLength } from '../segment/index.ts';
import type { LookAhead } from './ahead.ts';
import type { Download } from './downloads.ts';
import type { Loads } from './loads.ts';
import type { Peer } from './ports.ts';
import type { Shared } from './shared.ts';

export interface ExecuteHost {
  loads: Pick<Loads, 'startOrigin' | 'finish' | 'giveUp'>;
  ahead: Pick<LookAhead, 'mayAsk'>;
  wake(ms: number): void;
}

export const execute = (shared: Shared, actions: Action[], now: number, { loads, ahead, wake }: ExecuteHost): void => {
  const { segments, peers, cache, stats, changed } = shared;
  const certificates = new Map<Peer, string[]>();
  const batches = new Map<
    string,
    { peer: Peer; segment: string; lane: 0 | 1; list: { id: number; piece: number }[] }
  >();
  const stalled = new Set<Peer>();
  for (const a of actions) {
    const s = 'segment' in a ? segments.byId.get(a.segment) : undefined;
    const peer = 'peer' in a ? peers.byId.get(a.peer) : undefined;
    if (a.type === 'wake') {
      wake((a.at_us - now) / 1000);
    } else if (a.type === 'origin' && s) {
      loads.startOrigin(s, a.reason);
    } else if (a.type === 'stop-origin' && s) {
      loads.finish(s);
    } else if (a.type === 'fail' && s) {
      loads.giveUp(s);
    } else if (a.type === 'certificate' && s && peer) {
      s.state = 'asked';
      if (s.certAskedUs < 0) s.certAskedUs = now;
      s.certPeers.push(a.peer);
      certificates.set(peer, [...(certificates.get(peer) ?? []), s.id]);
    } else if (a.type === 'request' && s?.certificate && peer) {
      // What may not be asked for now comes again with another decision.
      if (a.lane && !ahead.mayAsk()) continue;
      if (!cache.get(s.id)) {
        cache.open(s.id, s.certificate.length);
        peers.announce(s.id);
      }
      const length = pieceLength(s.certificate.length, a.piece);
      const d = peer.supply.downloads.add({
        segment: s.id,
        piece: a.piece,
        length,
        lane: a.lane,
        reason: a.reason,
        sentUs: now,
      });
      if (a.lane) peer.lane!.requested(length);
      const key = a.peer + s.id + a.lane;
      const batch = batches.get(key) ?? { peer, segment: s.id, lane: a.lane, list: [] };
      batches.set(key, batch);
      batch.list.push({ id: d.id, piece: a.piece });
    } else if ((a.type === 'cancel' || a.type === 'promote') && peer) {
      const d = peer.supply.downloads.find(a.segment, a.piece);
      if (!d) continue;
      if (a.type === 'promote') {
        if (!d.lane) continue;
        peer.lane?.gone(d.length - d.received);
        peer.supply.downloads.promote(d, now);
        stats.add('promotions', 1);
        peer.sendIds('promote', [d.id]);
      } else {
        const which = (x: Download) => x === d;
        if (a.reason === 'late' && s?.certificate) peer.supply.outdone(which, s.certificate.length, s.ref.durationMs);
        else peer.supply.cancel(which);
        if (a.reason === 'stalled') stalled.add(peer);
      }
    }
  }
  for (const [peer, list] of certificates)
    inMessages(list, (segments) => peer.send({ type: 'certificate-request', segments }));
  for (const { peer, segment, lane, list } of batches.values())
    inMessages(list, (requests) => peer.send({ type: 'request', segment, lane, requests }));
  for (const peer of stalled) {
    stats.count('stalls');
    changed();
    peer.supply.stalled(now);
  }
};
