/** Events of the library: typed, and never a way for a listener's error to get back in. */

import type { EngineEvents, LinkCloseReason, PeerRole, Reason } from './ports.ts';

/**
 * What the library says when peer delivery is off or impaired. Playback goes on in every case.
 *
 * - `insecure-context`, `no-webrtc`, `no-webcrypto`: the browser or page cannot, or there is no page (Node).
 * - `needs-token`, `policy-off`, `control-group`, `foreign-manifest`, `bad-manifest`: this title is not shared.
 * - `token-refused`: the tracker does not take the join token, or misses one, and the page gives no better one.
 * - `tracker-refused`: the tracker does not take this client; `tracker-unreachable`: still trying.
 * - `private-tracker`: a public page may not connect to a private address. `tracker-blocked`: the browser forbids the socket,
 *   for the page's content security policy or an https page's `ws:`.
 * - `no-player`: no usable player on the page (drop-in only). `consent-missing`: waiting for the viewer's consent.
 * - `engine-missing`: the script's second file does not load. `worker-blocked`: the policy forbids workers, so hidden tabs send slowly.
 * - `signed-urls`: names of segments, or of the title, carry parameters of one viewer; playback and sharing go on.
 * - `links-blocked`: no link to any peer opens. `internal`: a defect of the library, caught.
 */
export type NoticeCode =
  | 'insecure-context'
  | 'no-webrtc'
  | 'no-webcrypto'
  | 'needs-token'
  | 'policy-off'
  | 'control-group'
  | 'foreign-manifest'
  | 'bad-manifest'
  | 'token-refused'
  | 'tracker-refused'
  | 'tracker-unreachable'
  | 'tracker-blocked'
  | 'tracker-error'
  | 'private-tracker'
  | 'signed-urls'
  | 'no-player'
  | 'consent-missing'
  | 'links-blocked'
  | 'engine-missing'
  | 'worker-blocked'
  | 'internal';

/** One coded event: what happened, in a sentence, and what to do about it. */
export interface Notice {
  code: NoticeCode;
  message: string;
  hint: string;
}

/** `idle` before start, `connecting`, `ready` (session open), `waiting` (between attempts), `off`, `stopped`. */
export type LeewayState = 'idle' | 'connecting' | 'ready' | 'waiting' | 'off' | 'stopped';

export interface LeewayEvents {
  state: { state: LeewayState };
  notice: Notice;
  /** A title's swarm has been joined. */
  joined: { manifest: string; title: string; swarm: string; viewers: number; seeds: number };
  /** A segment has been handed to the player by the engine. */
  segment: EngineEvents['segment'] & { manifest: string };
  /** A verified piece came in, or a piece went out. */
  piece: EngineEvents['piece'] & { manifest: string };
  /** A link is of use. */
  link: EngineEvents['link'] & { manifest: string };
  /** A link has ended. */
  unlink: { manifest: string; peer: string; role: PeerRole; reason: LinkCloseReason; banned: boolean };
  /** The origin's bytes differ from a certificate, or two certificates from each other. */
  contradiction: EngineEvents['contradiction'] & { manifest: string };
  /** A title's peer delivery went off (a reason) or on again (null). */
  off: { manifest: string; reason: Reason | null };
}

export interface Emitter<Events> {
  /** Returns a function that takes the listener off again. */
  on<K extends keyof Events>(event: K, listener: (detail: Events[K]) => void): () => void;
  emit<K extends keyof Events>(event: K, detail: Events[K]): void;
  clear(): void;
}

/** `failed` hears of listeners that threw. */
export function createEmitter<Events>(failed: (error: unknown) => void): Emitter<Events> {
  const listeners = new Set<[event: keyof Events, listener: (detail: never) => void]>();
  return {
    on(event, listener) {
      const entry: [keyof Events, typeof listener] = [event, listener];
      listeners.add(entry);
      return () => void listeners.delete(entry);
    },
    emit(event, detail) {
      for (const [name, listener] of [...listeners]) {
        if (name !== event) continue;
        try {
          listener(detail as never);
        } catch (error) {
          failed(error);
        }
      }
    },
    clear: () => listeners.clear(),
  };
}
