/** ICE candidates: whose address they show, and which of the other side's may be used. */

export interface CandidateInfo {
  address: string;
  type: string;
}

/** Reads a candidate attribute ("candidate:…", with or without "a="). Undefined if it is not one. */
export function parseCandidate(line: string): CandidateInfo | undefined {
  const found = /^\s*(a=)?candidate:\S+(\s+\S+){3}\s+(\S+)\s+\S+\s+typ\s+(\S+)/.exec(line);
  return found ? { address: found[3]!, type: found[4]! } : undefined;
}

const local =
  /(^|\.)local(host)?$|^(::ffff:)?(0|10|127|169\.254|192\.168|172\.(1[6-9]|2\d|3[01])|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7]))\.[\d.]+$|^::1?$|^f([cd].|e[89ab]).:/i;

/** Whether an address leads to the viewer's own network: mDNS names, loopback, private, link-local, carrier NAT. */
export function isLocalAddress(address: string): boolean {
  return local.test(address.replace(/^\[|\]$/g, ''));
}

/** A description without its local candidates. */
export function stripLocalCandidates(sdp: string): string {
  return sdp
    .split('\r\n')
    .filter((line) => !line.startsWith('a=candidate:') || !isLocalAddress(parseCandidate(line)?.address ?? ''))
    .join('\r\n');
}
