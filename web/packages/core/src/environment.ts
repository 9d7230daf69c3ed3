/** What the library needs of the page it runs on. `browser/` has the real one; tests bring their own. */

import type { Clock, Crypto } from './ports.ts';
import type { OpenSocket } from './session/session.ts';

/** What a viewer knows of its line and clock as it joins. */
export interface Line {
  /** The viewer asked to save data, or the line is cellular. */
  metered: boolean;
  /** A phone or tablet whose browser does not say how it is connected. */
  unknown: boolean;
  /** The clock is too coarse to give way by. */
  coarse: boolean;
}

export interface Environment {
  clock: Clock;
  crypto: Crypto;
  /** Uniform in [0, 1). */
  random(): number;
  randomBytes(length: number): Uint8Array;
  openSocket: OpenSocket;
  createConnection(configuration: RTCConfiguration): RTCPeerConnection;
  /** What is missing for peer delivery, or null. */
  missing(): 'insecure-context' | 'no-webrtc' | 'no-webcrypto' | null;
  /** Whether the page itself was loaded from outside of the viewer's own network, as the browser's local network checks see it. */
  onPublicHost(): boolean;
  /** Whether the page may reach the viewer's own network without a prompt. Does not prompt. */
  localAccess(): Promise<boolean>;
  /** What the browser says of the line and the clock, now. */
  line(): Line;
  /** The device runs on its battery, as far as the browser says. */
  battery(): boolean;
  hidden(): boolean;
  /** Calls when visibility changes; returns a function that ends it. */
  onVisibility(f: () => void): () => void;
  /** Calls with true when nothing of the page will run for a while, or ever, and with false when it does again. */
  onSleep(f: (asleep: boolean) => void): () => void;
  /** Calls when the page's content security policy has forbidden something, whatever script wanted it. */
  onForbidden(f: (what: Pick<SecurityPolicyViolationEvent, 'blockedURI' | 'effectiveDirective'>) => void): () => void;
}
