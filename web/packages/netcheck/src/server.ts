/** Requests to the server of a check (spec/probe.md, Endpoints). */
import { aborted, CheckError } from './error.ts';
import { relaysOf, type StunServer, stunServers } from './reach.ts';

const answerLimit = 65_536;

/** What the server says of itself. */
export interface ServerInfo {
  version: string;
  /** This client's address as the server sees it. */
  client: string;
  tests: readonly string[];
  /** That the check may ask. */
  stun: readonly StunServer[];
  /** That it may ask for an address, with credentials. */
  relays: readonly RTCIceServer[];
  /** Tests at a time that an address may have. */
  testsPerAddress: number | undefined;
}

export class Server {
  private readonly base: URL;
  private readonly token: string | undefined;
  private readonly patience: number;

  /** patience: seconds that an answer is waited for. Throws a `TypeError` where the server is no URL of HTTP. */
  constructor(server: string | URL, token: string | undefined, patience: number) {
    this.base = new URL(server);
    if (!/^https?:$/.test(this.base.protocol)) throw new TypeError(`${server} is no http or https URL.`);
    this.token = token;
    this.patience = patience;
  }

  get name(): string {
    return this.base.host;
  }

  /** The address of a test. */
  url(path: string, query: Record<string, string> = {}): URL {
    const url = new URL(path, this.base);
    for (const [key, value] of Object.entries(query)) url.searchParams.set(key, value);
    if (this.token !== undefined) url.searchParams.set('access_token', this.token);
    return url;
  }

  /** The address of a WebSocket. */
  socketURL(path: string, query: Record<string, string> = {}): string {
    const url = this.url(path, query);
    url.protocol = url.protocol.replace('http', 'ws');
    return url.href;
  }

  async info(signal: AbortSignal): Promise<ServerInfo> {
    const text = await this.get(this.url('/probe/v1/info'), signal);
    let all: Record<string, unknown>;
    try {
      all = JSON.parse(text);
      if (typeof all !== 'object' || all === null) throw new TypeError('no object');
    } catch (cause) {
      throw new CheckError('unreachable', `${this.name} is no server of the network check: its answer is not JSON.`, {
        cause,
      });
    }
    const most = (all.limits as { tests_per_address?: unknown } | undefined)?.tests_per_address;
    return {
      version: String(all.version ?? ''),
      client: String(all.client ?? ''),
      tests: Array.isArray(all.tests) ? all.tests.filter((t) => typeof t === 'string') : [],
      stun: stunServers(all.stun, this.base.hostname),
      relays: relaysOf(all.ice_servers),
      testsPerAddress: typeof most === 'number' && most >= 1 ? most : undefined,
    };
  }

  /** Posts the offer of a quality test; gives the answer's description. */
  async offer(sdp: string, signal: AbortSignal): Promise<string> {
    const body = JSON.stringify({ type: 'offer', sdp });
    // Without a content type of its own it needs no preflight.
    const text = await this.get(this.url('/probe/v1/quality'), signal, { method: 'POST', body });
    try {
      const answer = JSON.parse(text).sdp;
      if (typeof answer === 'string') return answer;
    } catch {
      // as if it had none
    }
    throw new CheckError(
      'unreachable',
      `${this.name} is no server of the network check: it answers an offer with something else.`,
    );
  }

  /** Why the server takes no WebSocket, which a WebSocket does not say: the error of a request that counts as a test, too. */
  async refusal(signal: AbortSignal): Promise<CheckError> {
    try {
      await this.get(this.url('/probe/v1/download', { bytes: '1' }), signal);
    } catch (error) {
      return error as CheckError;
    }
    return new CheckError(
      'unreachable',
      `${this.name} answers, but no WebSocket to it opens. A proxy or a filter on the way may not let it through.`,
    );
  }

  /** The text of an answer of 200. */
  async get(url: URL, signal: AbortSignal, request: RequestInit = {}): Promise<string> {
    if (signal.aborted) throw aborted(signal);
    const end = new AbortController();
    const stop = () => end.abort();
    signal.addEventListener('abort', stop);
    const late = setTimeout(stop, this.patience * 1000);
    try {
      const response = await fetch(url, { ...request, signal: end.signal, cache: 'no-store', credentials: 'omit' });
      const text = await this.body(response);
      if (response.ok) return text;
      throw this.refused(response, text);
    } catch (cause) {
      if (signal.aborted) throw aborted(signal);
      if (cause instanceof CheckError) throw cause;
      throw new CheckError('unreachable', `${this.name} does not answer.`, { cause });
    } finally {
      clearTimeout(late);
      signal.removeEventListener('abort', stop);
    }
  }

  private async body(response: Response): Promise<string> {
    const reader = response.body?.getReader();
    if (!reader) return '';
    const decoder = new TextDecoder();
    let text = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return text;
      text += decoder.decode(value, { stream: true });
      if (text.length > answerLimit) {
        void reader.cancel();
        throw new CheckError('unreachable', `${this.name} is no server of the network check: its answer is too long.`);
      }
    }
  }

  private refused(response: Response, text: string): CheckError {
    const after = Number(response.headers.get('Retry-After') ?? Number.NaN);
    const said = text.trim().slice(0, 300);
    return new CheckError('refused', `${this.name} refuses the check (${response.status})${said && `: ${said}`}`, {
      status: response.status,
      ...(after > 0 && { retryAfter: after }),
    });
  }
}
