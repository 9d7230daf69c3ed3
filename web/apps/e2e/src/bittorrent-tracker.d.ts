// What is used of a package that comes without types.
declare module 'bittorrent-tracker/server' {
  import type { EventEmitter } from 'node:events';
  import type { Server as HttpServer } from 'node:http';

  export default class Server extends EventEmitter {
    constructor(options: { http: false; udp: false; stats: false });
    readonly http: HttpServer;
    listen(port: number, host: string, listening: () => void): void;
    close(closed: () => void): void;
  }
}
