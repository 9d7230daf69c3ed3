/** Addresses of candidates and hosts: their one form, and whether they lead to the viewer's own network. */

/** The 16 bytes of IPv6, IPv4 as ::ffff:0:0/96; undefined if the text is no address, or has a zone. */
export function parseAddress(text: string): number[] | undefined {
  const last = text.lastIndexOf(':');
  const four = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text.slice(last + 1))?.slice(1);
  if (four?.some((part) => Number(part) > 255 || String(Number(part)) !== part)) return;
  const bytes = (four ?? []).map(Number);
  if (last < 0) return four && [...new Array(10).fill(0), 255, 255, ...bytes];
  // The last four bytes are two groups.
  const hex = (high: number, low: number) => ((high << 8) | low).toString(16);
  const groups = four ? `${text.slice(0, last + 1)}${hex(bytes[0]!, bytes[1]!)}:${hex(bytes[2]!, bytes[3]!)}` : text;
  const halves = groups.split('::');
  if (halves.length > 2) return;
  const [left, right] = halves.map((half) => (half ? half.split(':') : []));
  const missing = 8 - left!.length - (right?.length ?? 0);
  if (right ? missing < 1 : missing !== 0) return;
  const all = [...left!, ...new Array(missing).fill('0'), ...(right ?? [])];
  if (!all.every((group) => /^[\da-f]{1,4}$/i.test(group))) return;
  return all.flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255]);
}

const isMapped = (bytes: number[]) => bytes.slice(0, 12).join() === '0,0,0,0,0,0,0,0,0,0,255,255';

/** The shortest form (RFC 5952); what maps IPv4 is written as that. */
export function writeAddress(bytes: number[]): string {
  if (isMapped(bytes)) return bytes.slice(12).join('.');
  const groups: string[] = [];
  for (let i = 0; i < 16; i += 2) groups.push(((bytes[i]! << 8) | bytes[i + 1]!).toString(16));
  const text = groups.join(':');
  // The longest run of zeros, and the first of them.
  const run = (text.match(/\b0(:0)+\b/g) ?? []).reduce((a, b) => (b.length > a.length ? b : a), '');
  if (!run) return text;
  const at = `:${text}:`.indexOf(`:${run}:`);
  return `${text.slice(0, Math.max(0, at - 1))}::${text.slice(at + run.length + 1)}`;
}

/** Global unicast, less 6to4, which is as good as the IPv4 address in it. */
const globalSix = /^\[?(?!2002)[23]...:/;
const localFour =
  /^(0|10|127|169\.254|172\.(1[6-9]|2\d|3[01])|192\.168|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])|22[4-9]|2[3-5]\d)\.[\d.]+$/;

/**
 * Whether an address leads to the viewer's own network: mDNS names, loopback, private, link-local, carrier NAT, and what
 * is no global unicast address. A name is the page's own host. It takes the form that `writeAddress` or a URL gives.
 */
export const isLocalAddress = (address: string): boolean =>
  address.includes(':') ? !globalSix.test(address) : localFour.test(address) || /(^|\.)local(host)?$/i.test(address);
