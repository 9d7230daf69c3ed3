/**
 * The engine's side of low-latency streams (spec/parts.md). The node comes in a script of its own when the player asks for a part the
 * first time. Until it is there the origin serves them, and what peers say is kept.
 */
import type { Loading } from '../playback.ts';
import type { SegmentRequest } from '../ports.ts';
import { typeFollow } from '../protocol/parts.ts';
import type { DataMessage } from '../protocol/peer.ts';
import type { Peer } from './ports.ts';
import type { Need, Seldom } from './seldom.ts';
import { type Shared, sharing } from './shared.ts';
import type { Streams, StreamsHost } from './streams.ts';

export interface LowLatency {
  /**
   * Loads a part, or a segment that may still be made, if peers may have a share in it; `instead` loads the segment as any other. Another
   * request says what the player does instead.
   */
  load(request: SegmentRequest, instead: () => Loading): Loading | undefined;
  /** A peer is ready, */
  linked(peer: Peer): void;
  /** or gone. */
  gone(peer: Peer): void;
  /** It says a message of parts. */
  heard(peer: Peer, message: Uint8Array): void;
  /** Takes the data of a pushed piece. False: nothing can have been pushed. */
  pushed(peer: Peer, m: DataMessage): boolean;
  /** Peers deliver nothing any more. */
  leave(): void;
}

export interface LowLatencyHost extends StreamsHost {
  need: Need;
}

/** Streams of a peer that are remembered for the node: as many as it may follow. */
const mostFollowed = 8;
/** A follow up to its last byte, which says whether it begins or ends. */
const followed = 17;

export const createLowLatency = (shared: Shared, host: LowLatencyHost): LowLatency => {
  const { stats } = shared;
  /** What peers said last of each stream. They say nothing else to one that follows none. */
  const early = new Map<Peer, Map<string, Uint8Array>>();
  let streams: Streams | undefined;

  const begin = ({ createStreams }: Seldom) => {
    if (shared.stopped || streams) return;
    const made = createStreams(shared, host);
    streams = made;
    for (const peer of shared.peers.all()) if (peer.speaksParts) made.linked(peer);
    for (const [peer, said] of early) for (const message of said.values()) made.heard(peer, message);
    early.clear();
  };

  return {
    load(request, instead) {
      const { part, growing, live, durationMs, track } = request;
      if (part || growing) {
        if (!sharing(shared)) return undefined;
        if (!streams) host.need(begin);
        return streams?.load(request, instead);
      }
      // Segments are played, and no parts. One of no duration begins them.
      if (live && durationMs) streams?.leave(track);
      return undefined;
    },
    linked(peer) {
      if (peer.speaksParts) streams?.linked(peer);
    },
    gone(peer) {
      early.delete(peer);
      streams?.gone(peer);
    },
    heard(peer, message) {
      if (streams) return streams.heard(peer, message);
      if (message[0] !== typeFollow || message.length > followed + 1) return stats.count('parts_early');
      const said = early.get(peer) ?? new Map<string, Uint8Array>();
      const of = message.subarray(0, followed).join();
      said.delete(of);
      if (message[followed] === 0) return;
      if (said.size === mostFollowed) return stats.count('parts_early');
      early.set(peer, said.set(of, message.slice()));
    },
    pushed(peer, m) {
      streams?.pushed(peer, m);
      return !!streams;
    },
    leave() {
      streams?.leaveAll();
    },
  };
};
