/**
 * Session descriptions of links, which have a data channel section and nothing else (RFC 8841). A description of the other
 * side is read into known fields, and what the browser gets is written from them: no line of another side's goes further.
 * Go: internal/wire/sdp; spec/vectors/sdp.json holds both together.
 */

import { type Candidate, parseCandidate, writeCandidate } from './candidates.ts';

export interface Description {
  ufrag: string;
  password: string;
  /** SHA-256, upper case, with colons. */
  fingerprint: string;
  setup: string;
  mid: string;
  /** Bytes; 0: any. */
  maxMessage: number;
  /** The parameters of the other side's association, base64. */
  sctpInit?: string;
  candidates: Candidate[];
  /** Candidates that are malformed, never used or too many. */
  dropped: number;
}

const mostCandidates = 64;

/** What each attribute has to be. A map: the names come from outside. */
const known = new Map([
  ['ice-ufrag', /^[\da-z+/]{4,32}$/i],
  ['ice-pwd', /^[\da-z+/]{22,64}$/i],
  ['fingerprint', /^sha-256 [\da-f]{2}(:[\da-f]{2}){31}$/i],
  ['setup', /^(actpass|active|passive)$/],
  ['mid', /^[\w!#$%&'*+.^`{|}~-]{1,64}$/],
  ['max-message-size', /^(0|[1-9]\d{0,9})$/],
  ['sctp-port', /^5000$/],
  ['sctp-init', /^[\da-z+/=]{4,}$/i],
]);
const media = /^m=application [1-9]\d{0,4} (UDP|TCP)\/DTLS\/SCTP webrtc-datachannel$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: a line has none
const lineForm = /^[a-z]=[^\0-\x1f\x7f]*$/;

/** What of a description is wrong: the attribute, or "line", "version", "media". It quotes nothing of it. */
export class DescriptionError extends Error {
  constructor(readonly field: string) {
    super(`session description: ${field} is missing, malformed or there twice`);
  }
}

function refuse(field: string): never {
  throw new DescriptionError(field);
}

const isInit = (text: string) => {
  try {
    const bytes = atob(text);
    return btoa(bytes) === text && bytes.length <= 1024;
  } catch {
    return false;
  }
};

/** Reads a description. Lines end with LF or CRLF. What it does not know is left out; what it knows must be right. */
export function parseDescription(text: string): Description {
  const candidates: Candidate[] = [];
  let dropped = 0;
  const session = new Map<string, string>();
  let section: Map<string, string> | undefined;
  text
    .replace(/\n$/, '')
    .split('\n')
    .forEach((ended, i) => {
      const line = ended.replace(/\r$/, '');
      if (i === 0 && line !== 'v=0') refuse('version');
      if (!lineForm.test(line)) refuse('line');
      if (line[0] === 'm') {
        if (section || !media.test(line) || Number(line.split(' ')[1]) > 65535) refuse('media');
        section = new Map();
      }
      if (line[0] !== 'a') return;
      const [, attribute, value] = /^a=([^:]*):?(.*)$/s.exec(line) as unknown as [string, string, string];
      if (attribute === 'candidate') {
        const candidate = candidates.length < mostCandidates && parseCandidate(line);
        if (candidate) candidates.push(candidate);
        else dropped++;
      } else if (known.has(attribute) && (attribute !== 'fingerprint' || /^sha-256 /i.test(value))) {
        const at = section ?? session;
        if (at.has(attribute)) refuse(attribute);
        at.set(attribute, value);
      }
    });
  if (!section) refuse('media');
  /** Without a default an attribute must be there. */
  const said = (attribute: string, or?: string) => {
    const value = section!.get(attribute) ?? session.get(attribute);
    if (value === undefined) return or ?? refuse(attribute);
    return known.get(attribute)!.test(value) ? value : refuse(attribute);
  };
  const description: Description = {
    ufrag: said('ice-ufrag'),
    password: said('ice-pwd'),
    fingerprint: said('fingerprint').slice(8).toUpperCase(),
    setup: said('setup'),
    mid: said('mid'),
    maxMessage: Number(said('max-message-size', '65536')),
    candidates,
    dropped,
  };
  if (description.maxMessage > 0xffffffff) refuse('max-message-size');
  said('sctp-port', '5000');
  const init = said('sctp-init', '');
  if (init && !isInit(init)) refuse('sctp-init');
  return init ? { ...description, sctpInit: init } : description;
}

export function writeDescription(d: Description): string {
  return [
    'v=0',
    'o=- 1 1 IN IP4 0.0.0.0',
    's=-',
    't=0 0',
    `a=group:BUNDLE ${d.mid}`,
    'm=application 9 UDP/DTLS/SCTP webrtc-datachannel',
    'c=IN IP4 0.0.0.0',
    `a=ice-ufrag:${d.ufrag}`,
    `a=ice-pwd:${d.password}`,
    'a=ice-options:trickle',
    `a=fingerprint:sha-256 ${d.fingerprint}`,
    `a=setup:${d.setup}`,
    `a=mid:${d.mid}`,
    'a=sctp-port:5000',
    `a=max-message-size:${d.maxMessage}`,
    ...d.candidates.map((candidate) => `a=${writeCandidate(candidate)}`),
    ...(d.sctpInit ? [`a=sctp-init:${d.sctpInit}`] : []),
    '',
  ].join('\r\n');
}
