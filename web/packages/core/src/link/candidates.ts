/** ICE candidates of the other side, read and written anew. Go: internal/wire/sdp. */

import { candidateBytes } from '../ports.ts';
import { parseAddress, writeAddress } from './address.ts';

export interface Candidate {
  foundation: string;
  priority: number;
  /** IPv4 in its own form, IPv6 in its shortest, or an mDNS name. */
  address: string;
  port: number;
  type: string;
  /** Of the network, as WebRTC's browsers state it; 0: none is stated. */
  cost: number;
}

const grammar =
  /^candidate:([\dA-Za-z+/]{1,32}) 1 [Uu][Dd][Pp] (0|[1-9]\d{0,9}) ([!-~]+) ([1-9]\d{0,4}) typ (host|srflx|prflx|relay)(?: ([ -~]*))?$/;
const name = /^[\da-z-]{1,63}\.local$/;

/** The cost of the network, among what follows the type: names and values by turns. */
const costOf = (rest: string): number => {
  const words = rest.split(' ');
  const value = words.find((_, i) => i % 2 === 1 && words[i - 1] === 'network-cost');
  return value && /^[1-9]\d{0,2}$/.test(value) ? Number(value) : 0;
};

/**
 * Reads a candidate attribute ("candidate:…", with or without "a="). Undefined is what is malformed and what is never
 * used: other components, TCP, host names that are no mDNS names.
 */
export function parseCandidate(text: string): Candidate | undefined {
  const found = grammar.exec(text.replace(/^a=/, ''));
  if (!found || found[0].length > candidateBytes) return;
  const [, foundation, priority, host, port, type, rest = ''] = found as unknown as [
    string,
    string,
    string,
    string,
    string,
    string,
    string?,
  ];
  const bytes = parseAddress(host);
  const address = bytes ? writeAddress(bytes) : host.toLowerCase();
  if (!bytes && !name.test(address)) return;
  if (Number(priority) > 0xffffffff || Number(port) > 65535) return;
  return { foundation, priority: Number(priority), address, port: Number(port), type, cost: costOf(rest) };
}

/**
 * What the candidate is based on is left out: it is for diagnosis, and shows an address. The cost stays: a browser adds both
 * sides' before it compares pairs, and prefers a relay to what seems to cost more.
 */
export function writeCandidate(c: Candidate): string {
  const based = c.type === 'host' ? '' : ` raddr ${c.address.includes(':') ? '::' : '0.0.0.0'} rport 0`;
  const cost = c.cost ? ` network-cost ${c.cost}` : '';
  return `candidate:${c.foundation} 1 udp ${c.priority} ${c.address} ${c.port} typ ${c.type}${based}${cost}`;
}
