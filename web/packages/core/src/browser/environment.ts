/** The page as the library sees it. The only folder that touches globals. */

import type { Environment, Line } from '../environment.ts';
import { isLocalAddress } from '../link/address.ts';
import type { Clock, Crypto } from '../ports.ts';
import type { OpenSocket } from '../session/session.ts';
import { listen, onSleep } from './sleep.ts';

let readAt = 0;
let fine = false;

export const clock: Clock = {
  now() {
    const at = performance.now();
    fine ||= at > readAt && at < readAt + 10;
    readAt = at;
    return at;
  },
  coarse: () => !fine,
  setTimer: (f, ms) => setTimeout(f, ms) as unknown as number,
  clearTimer: (id) => clearTimeout(id),
};

const p256 = { name: 'ECDSA', namedCurve: 'P-256' };
const imported = new Map<string, Promise<CryptoKey>>();

/** Keys are few and used often: importing one costs as much as a verification. */
function importKey(raw: Uint8Array): Promise<CryptoKey> {
  const name = String(raw);
  let key = imported.get(name);
  if (!key) {
    if (imported.size >= 64) imported.clear();
    key = crypto.subtle.importKey('raw', raw as BufferSource, p256, false, ['verify']);
    imported.set(name, key);
  }
  return key;
}

const webCrypto: Crypto = {
  digest: async (data) => new Uint8Array(await crypto.subtle.digest('SHA-256', data as BufferSource)),
  verify: async (key, signature, data) =>
    crypto.subtle.verify(
      { name: 'ECDSA', hash: 'SHA-256' },
      await importKey(key),
      signature as BufferSource,
      data as BufferSource,
    ),
};

const openSocket: OpenSocket = (url, protocol, handlers) => {
  const socket = new WebSocket(url, protocol);
  socket.onopen = () => handlers.open();
  socket.onmessage = (event) => handlers.message(event.data);
  socket.onclose = () => handlers.close();
  return {
    send: (text) => {
      if (socket.readyState === WebSocket.OPEN) socket.send(text);
    },
    close: (code) => {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close(code);
    },
  };
};

const onPublicHost = (): boolean => !isLocalAddress(location.hostname);

/**
 * Only public pages are gated, and only in browsers that know the permission: without the gate, or with the
 * permission, private candidates cause no prompt. Firefox knows the permission, and does not gate WebRTC by it (ESR 153).
 */
async function localAccess(): Promise<boolean> {
  if (!onPublicHost() || navigator.userAgent.includes(' Firefox/')) return true;
  const asked = navigator.permissions?.query({ name: 'local-network' as PermissionName });
  return asked?.then((status) => status.state === 'granted').catch(() => true) ?? true;
}

interface NetworkInformation {
  saveData?: boolean;
  type?: string;
}

/** Browsers that have no NetworkInformation do not hint at phones either, except by their name and by what one points with. */
function line(): Line {
  const page = navigator as { connection?: NetworkInformation; userAgentData?: { mobile: boolean } };
  const { saveData, type = 'unknown' } = page.connection ?? {};
  return {
    metered: !!saveData || type === 'cellular',
    unknown:
      type === 'unknown' &&
      (page.userAgentData?.mobile ??
        (/Mobi|Android/.test(navigator.userAgent) || matchMedia('(pointer: coarse)').matches)),
    coarse: !fine,
  };
}

let power: { charging: boolean } | undefined;

/** Known a moment after the first question, where it is known at all. */
function battery(): boolean {
  if (!power) {
    power = { charging: true };
    (navigator as { getBattery?(): Promise<{ charging: boolean }> }).getBattery?.().then(
      (known) => {
        power = known;
      },
      () => {},
    );
  }
  return !power.charging;
}

/** The environment of the page that this script runs on. */
export function browserEnvironment(): Environment {
  return {
    clock,
    crypto: webCrypto,
    random: Math.random,
    randomBytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
    openSocket,
    createConnection: (configuration) => new RTCPeerConnection(configuration),
    missing: () => {
      // Where there is no page, in Node say, there is none of these, and nothing insecure about it.
      const { isSecureContext, RTCPeerConnection, crypto } = globalThis;
      if (isSecureContext === false) return 'insecure-context';
      if (!RTCPeerConnection) return 'no-webrtc';
      return crypto?.subtle ? null : 'no-webcrypto';
    },
    onPublicHost,
    localAccess,
    line,
    battery,
    hidden: () => document.visibilityState === 'hidden',
    onVisibility: (f) => listen(document, 'visibilitychange', f),
    onSleep,
    onForbidden: (f) =>
      listen(document, 'securitypolicyviolation', (event) => {
        const violation = event as SecurityPolicyViolationEvent;
        // What is only reported goes on.
        if (violation.disposition !== 'report') f(violation);
      }),
  };
}
