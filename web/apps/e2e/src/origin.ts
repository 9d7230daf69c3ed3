import { createHash } from 'node:crypto';
import { type FileHandle, open, readFile, stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, normalize } from 'node:path';
import type { Body } from '@leeway/conformance';

/** Ports that viewers come by, to be shaped one by one. */
export const lines = ['line1', 'line2', 'line3', 'line4'] as const;

/** The client that asked: viewers and the seed come by different ports of the same origin, so nothing has to be guessed. */
export type Asker = 'viewer' | 'shaped' | 'seed' | 'hostile' | (typeof lines)[number];

export interface Request {
  asker: Asker;
  method: string;
  path: string;
  /** Without the question mark. */
  query: string;
  /** Headers of Common Media Client Data, with commas between them. */
  cmcd: string;
  status: number;
  bytes: number;
  at: number;
}

/** Answers what lies below a prefix; undefined: there is nothing. */
export type Mount = (path: string, query: URLSearchParams) => Promise<Body | undefined>;

/** What the origin does to a request instead of answering it well. */
export interface Fault {
  match: RegExp;
  askers?: Asker[];
  status?: number;
  /** Bytes per second of the body. */
  rate?: number;
  delayMs?: number;
  /** How often; then the fault is over. */
  times?: number;
}

const types: Record<string, string> = {
  '.m3u8': 'application/vnd.apple.mpegurl',
  '.ts': 'video/mp2t',
  '.m4s': 'video/iso.segment',
  '.mp4': 'video/mp4',
  '.mpd': 'application/dash+xml',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.html': 'text/html; charset=utf-8',
};

/** An HTTP origin of a film on disk, with a ledger, faults on demand, and a port for each kind of asker. */
export class Origin {
  readonly ledger: Request[] = [];
  readonly faults: Fault[] = [];
  /** Bodies that replace files, by path: a re-encoded file under the same URL. */
  readonly replaced = new Map<string, Buffer>();
  /** What a port does to an answer whose usual headers are set; true: it has answered by itself. */
  readonly manners = new Map<Asker, (request: IncomingMessage, response: ServerResponse, path: string) => boolean>();
  /** Pages and scripts, by path; they may set headers of their answer. */
  readonly pages = new Map<string, (url: URL, answer: ServerResponse) => string | Buffer>();
  /** Folders beside the film, by prefix. */
  readonly mounts = new Map<string, Mount>();
  private readonly servers = new Map<Asker, Server>();

  private constructor(private readonly film: string) {}

  /** Serves the folder `film` under /media/film/ on loopback, and pages on all addresses. */
  static async start(film: string): Promise<Origin> {
    const origin = new Origin(film);
    for (const asker of ['viewer', 'shaped', 'seed', 'hostile', ...lines] as const) {
      const server = createServer((request, response) => {
        origin.serve(asker, request, response).catch((error: unknown) => response.destroy(error as Error));
      });
      await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
      origin.servers.set(asker, server);
    }
    return origin;
  }

  port(asker: Asker = 'viewer'): number {
    return (this.servers.get(asker)!.address() as AddressInfo).port;
  }

  url(path: string, asker: Asker = 'viewer', host = '127.0.0.1'): string {
    return `http://${host}:${this.port(asker)}${path}`;
  }

  /** Requests for media segments so far. */
  segments(asker?: Asker): Request[] {
    return this.ledger.filter((r) => /\.(ts|m4s)$/.test(r.path) && (asker === undefined || r.asker === asker));
  }

  async stop(): Promise<void> {
    for (const server of this.servers.values()) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }

  /** The bytes that the origin serves for a path under /media/film/. */
  async body(path: string): Promise<Buffer> {
    return this.replaced.get(path) ?? readFile(this.file(path));
  }

  private file(path: string): string {
    return join(this.film, normalize(path.slice('/media/film'.length)));
  }

  private async serve(asker: Asker, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.url('/', asker));
    const path = decodeURIComponent(url.pathname);
    const { method = '' } = request;
    const query = url.search.slice(1);
    const cmcd = ['object', 'request', 'session', 'status'].map((kind) => request.headers[`cmcd-${kind}`] ?? '');
    const told = cmcd.filter(Boolean).join(',');
    const entry: Request = { asker, method, path, query, cmcd: told, status: 0, bytes: 0, at: Date.now() };
    this.ledger.push(entry);
    response.setHeader('Access-Control-Allow-Origin', '*');
    response.setHeader('Timing-Allow-Origin', '*');
    if (this.manners.get(asker)?.(request, response, path)) {
      entry.status = response.statusCode;
      return;
    }
    const page = this.pages.get(path);
    if (page) {
      response.setHeader('Content-Type', types[extname(path)] ?? 'text/html; charset=utf-8');
      return void response.end(page(url, response));
    }
    const fault = this.fault(asker, path);
    if (fault?.delayMs) await new Promise((resolve) => setTimeout(resolve, fault.delayMs));
    entry.status = fault?.status ?? 200;
    if (entry.status !== 200) return void response.writeHead(entry.status).end();
    for (const [prefix, answer] of this.mounts) {
      if (!path.startsWith(prefix)) continue;
      const body = await answer(path.slice(prefix.length), url.searchParams);
      if (!body) return void this.notFound(entry, response);
      if (!Buffer.isBuffer(body)) return this.pass(entry, request, response, body);
      return this.send(entry, request, response, body, etagOf(body), fault?.rate);
    }
    if (!path.startsWith('/media/film/')) return void this.notFound(entry, response);
    const replaced = this.replaced.get(path);
    if (replaced) return this.send(entry, request, response, replaced, etagOf(replaced), fault?.rate);
    const info = await stat(this.file(path)).catch(() => undefined);
    if (!info?.isFile()) return void this.notFound(entry, response);
    await this.send(
      entry,
      request,
      response,
      await readAll(this.file(path)),
      `"${info.size}-${info.mtimeMs}"`,
      fault?.rate,
    );
  }

  private notFound(entry: Request, response: ServerResponse): void {
    entry.status = 404;
    response.writeHead(404).end();
  }

  private fault(asker: Asker, path: string): Fault | undefined {
    const fault = this.faults.find(
      (f) => f.match.test(path) && (f.askers?.includes(asker) ?? true) && (f.times === undefined || f.times > 0),
    );
    if (fault?.times !== undefined) fault.times--;
    return fault;
  }

  /** A body whose length is not known yet. */
  private async pass(
    entry: Request,
    request: IncomingMessage,
    response: ServerResponse,
    body: AsyncIterable<Buffer>,
  ): Promise<void> {
    response.setHeader('Content-Type', types[extname(entry.path)] ?? 'application/octet-stream');
    response.setHeader('Cache-Control', 'public, no-cache');
    response.writeHead(entry.status);
    if (request.method === 'HEAD') return void response.end();
    for await (const part of body) {
      if (response.destroyed) return;
      entry.bytes += part.length;
      response.write(part);
    }
    response.end();
  }

  private async send(
    entry: Request,
    request: IncomingMessage,
    response: ServerResponse,
    whole: Buffer,
    etag: string,
    rate?: number,
  ): Promise<void> {
    response.setHeader('Content-Type', types[extname(entry.path)] ?? 'application/octet-stream');
    response.setHeader('ETag', etag);
    // A browser's own cache would hide what viewers ask of the origin.
    response.setHeader('Cache-Control', 'public, no-cache');
    response.setHeader('Accept-Ranges', 'bytes');
    let body = whole;
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
    if (range) {
      const first = Number(range[1]);
      const last = range[2] ? Math.min(Number(range[2]), whole.length - 1) : whole.length - 1;
      body = whole.subarray(first, last + 1);
      entry.status = 206;
      response.setHeader('Content-Range', `bytes ${first}-${last}/${whole.length}`);
    } else if (request.headers['if-none-match'] === etag) {
      entry.status = 304;
      return void response.writeHead(304).end();
    }
    response.writeHead(entry.status, { 'Content-Length': body.length });
    if (request.method === 'HEAD') return void response.end();
    if (rate === undefined) {
      entry.bytes = body.length;
      return void response.end(body);
    }
    const chunk = Math.max(1, Math.floor(rate / 20));
    for (let at = 0; at < body.length && !response.destroyed; at += chunk) {
      const part = body.subarray(at, at + chunk);
      entry.bytes += part.length;
      response.write(part);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    response.end();
  }
}

function etagOf(body: Buffer): string {
  return `"${createHash('sha256').update(body).digest('hex').slice(0, 16)}"`;
}

async function readAll(path: string): Promise<Buffer> {
  const handle: FileHandle = await open(path);
  try {
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}
