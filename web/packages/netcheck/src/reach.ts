/** Whether this page has UDP, and what its NAT does with it (spec/probe.md, Reachability). */
import { type Mapping, mapping } from './netstat/nat.ts';

export type CandidateType = 'host' | 'srflx' | 'relay';

export interface Reachability {
  /** Types of ICE candidates that came. */
  candidates: CandidateType[];
  ipv4: Mapping;
  ipv6: Mapping;
}

/** A STUN server. */
export interface StunServer {
  host: string;
  port: number;
}

const mostServers = 4;
const gatherMs = 2_000;
const types: readonly CandidateType[] = ['host', 'srflx', 'relay'];

/** What a server says of itself in `stun`; an empty host is that of the server itself. What is no HOST:PORT is left out. */
export function stunServers(said: unknown, own: string): StunServer[] {
  if (!Array.isArray(said)) return [];
  return said.slice(0, mostServers).flatMap((text) => {
    const [, host, digits] =
      (typeof text === 'string' && /^([\w.-]{0,255}|\[[\da-fA-F:.]+\]):(\d{1,5})$/.exec(text)) || [];
    const port = Number(digits);
    return port >= 1 && port <= 65_535 ? [{ host: host || own, port }] : [];
  });
}

const relayURL = /^turns?:([\w.-]{1,255}|\[[\da-fA-F:.]+\])(:\d{1,5})?(\?transport=(udp|tcp))?$/;

/** What a server says of relays in `ice_servers`. What a browser would refuse is left out. */
export function relaysOf(said: unknown): RTCIceServer[] {
  if (!Array.isArray(said)) return [];
  return said.slice(0, mostServers).flatMap((one) => {
    const { urls, username, credential } = (one ?? {}) as Record<string, unknown>;
    const known = Array.isArray(urls) ? urls.filter((u) => typeof u === 'string' && relayURL.test(u)) : [];
    if (known.length === 0 || typeof username !== 'string' || typeof credential !== 'string') return [];
    return [{ urls: known.slice(0, mostServers), username, credential }];
  });
}

/** Asks the servers, each alone and all at once. relays: servers with credentials, that are asked for relayed addresses, too. */
export async function testReach(
  servers: readonly StunServer[],
  relays: readonly RTCIceServer[],
  signal: AbortSignal,
): Promise<Reachability> {
  const urls = servers.map(({ host, port }) => `stun:${host}:${port}`);
  const [all, ...alone] = await Promise.all([
    gather([{ urls }, ...relays], signal),
    ...urls.map((url) => gather([{ urls: url }], signal)),
  ]);
  const family = (six: boolean): Mapping => {
    const of = (list: Candidate[]) => list.filter((c) => c.type === 'srflx' && c.address.includes(':') === six);
    const each = alone.map((list) => of(list));
    const answered = servers.filter((_, n) => each[n]!.length > 0).map(({ host }) => host);
    const joint = of(all!);
    // A machine in several networks has a reflexive address of each with every server.
    const networks = Math.max(...each.map(distinct));
    const known = joint.filter((c) => c.related);
    return mapping(
      answered,
      distinct(joint) > networks ? 2 : 1,
      known.length ? known.some((c) => c.related !== endpoint(c)) : null,
    );
  };
  const came = [all!, ...alone].flat();
  return {
    candidates: types.filter((type) => came.some((c) => c.type === type)),
    ipv4: family(false),
    ipv6: family(true),
  };
}

interface Candidate {
  type: string;
  address: string;
  port: number;
  /** Address and port of the socket, where the browser shows them. */
  related?: string;
}

const endpoint = (c: Pick<Candidate, 'address' | 'port'>) => `${c.address} ${c.port}`;
const distinct = (list: Candidate[]) => new Set(list.map(endpoint)).size;

/** The candidates that a browser gathers with these servers, until it has all, or the time is over. */
function gather(iceServers: RTCIceServer[], signal: AbortSignal): Promise<Candidate[]> {
  return new Promise((resolve) => {
    const found: Candidate[] = [];
    const connection = new RTCPeerConnection({ iceServers });
    const end = () => {
      clearTimeout(late);
      signal.removeEventListener('abort', end);
      connection.onicecandidate = null;
      connection.close();
      resolve(found);
    };
    const late = setTimeout(end, gatherMs);
    signal.addEventListener('abort', end);
    connection.onicecandidate = ({ candidate }) => {
      if (!candidate) return end();
      const { type, address, port, relatedAddress, relatedPort, protocol } = candidate;
      if (!type || !address || !port || protocol !== 'udp') return;
      // Browsers that hide the socket's address say 0.0.0.0 or ::.
      const shown = relatedAddress && !/^(0\.0\.0\.0|::)$/.test(relatedAddress) && relatedPort;
      found.push({
        type,
        address,
        port,
        ...(shown && { related: endpoint({ address: relatedAddress, port: relatedPort }) }),
      });
    };
    connection.createDataChannel('');
    connection
      .createOffer()
      .then((offer) => connection.setLocalDescription(offer))
      .catch(end);
  });
}
