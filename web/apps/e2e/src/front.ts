import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { createServer, type Server } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { dataDir } from './service.ts';

/**
 * An address that browsers take for public (TEST-NET-3), so that their local-network checks apply to the page. The suite's namespace
 * has it on its own link; nothing leaves.
 */
export const publicAddress = '203.0.113.1';

export function addPublicAddress(): void {
  execFileSync('ip', ['addr', 'replace', `${publicAddress}/32`, 'dev', 'lan0']);
}

/** A page's public face over https: pages and film from the origin, the script and the WebSocket from the tracker. */
export class Front {
  private constructor(
    private readonly server: Server,
    private readonly data: ReturnType<typeof dataDir>,
  ) {}

  /** `route` gives the port on loopback that answers a request. */
  static async start(port: number, route: (path: string, upgrade: boolean) => number): Promise<Front> {
    addPublicAddress();
    const data = dataDir();
    const [key, cert] = [join(data.path, 'key.pem'), join(data.path, 'cert.pem')];
    const subject = ['-subj', `/CN=${publicAddress}`, '-addext', `subjectAltName=IP:${publicAddress}`];
    execFileSync(
      'openssl',
      [
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:P-256',
        '-nodes',
        '-days',
        '2',
        ...subject,
        '-keyout',
        key,
        '-out',
        cert,
      ],
      { stdio: 'ignore' },
    );
    const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (request, response) => {
      const forward = httpRequest(
        { port: route(request.url ?? '/', false), path: request.url, method: request.method, headers: request.headers },
        (answer) => {
          response.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(response);
        },
      );
      forward.on('error', () => response.destroy());
      request.pipe(forward);
    });
    server.on('upgrade', (request, socket, head) => {
      const back = connect(route(request.url ?? '/', true), '127.0.0.1', () => {
        const lines = [`${request.method} ${request.url} HTTP/1.1`];
        for (let i = 0; i < request.rawHeaders.length; i += 2) {
          lines.push(`${request.rawHeaders[i]}: ${request.rawHeaders[i + 1]}`);
        }
        back.write(`${lines.join('\r\n')}\r\n\r\n`);
        back.write(head);
        socket.pipe(back).pipe(socket);
      });
      back.on('error', () => socket.destroy());
      socket.on('error', () => back.destroy());
    });
    await new Promise<void>((resolve) => server.listen(port, publicAddress, resolve));
    return new Front(server, data);
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    this.data.remove();
  }
}
