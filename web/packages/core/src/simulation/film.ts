import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import type { OriginFetcher, OriginResult, SegmentRef, VerifyKey } from '../ports.ts';
import { fromHex, hex, SiteRules, virtualRanges } from '../segment/index.ts';
import type { Network } from './world.ts';

export const site = { name: 'demo', hosts: ['video.example.com'] };
export const rules = new SiteRules({ ...site });
const sha256 = (b: Uint8Array | string) => new Uint8Array(createHash('sha256').update(b).digest());

export const idOf = (name: string): string => hex(sha256(`leeway segment v1\0${site.name}\0${name}`).subarray(0, 16));

/** Bytes that nothing else has, from a name. */
export const noise = (seed: string, length: number): Uint8Array => {
  let x = new DataView(sha256(seed).buffer).getUint32(0) | 1;
  const out = new Uint32Array(Math.ceil(length / 4));
  for (let i = 0; i < out.length; i++) {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    out[i] = x;
  }
  return new Uint8Array(out.buffer, 0, length);
};

export class Signer {
  private readonly key: KeyObject;
  readonly verifyKey: VerifyKey;
  /** `alg`: 1 of a seed, 2 of a packager. */
  constructor(alg = 1) {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    this.key = privateKey;
    const jwk = publicKey.export({ format: 'jwk' });
    const point = Buffer.concat([Buffer.from([4]), Buffer.from(jwk.x!, 'base64url'), Buffer.from(jwk.y!, 'base64url')]);
    this.verifyKey = { keyId: hex(sha256(point).subarray(0, 8)), key: new Uint8Array(point), alg };
  }

  /** A certificate, version 1, of a whole object or of a part of a longer one. */
  certify(name: string, data: Uint8Array, issuedAt: number, objectLength = data.length, version = ''): Uint8Array {
    const u64 = (n: number) => {
      const b = Buffer.alloc(8);
      b.writeBigUInt64BE(BigInt(n));
      return b;
    };
    const length = Buffer.alloc(4);
    length.writeUInt32BE(data.length);
    const nameLength = Buffer.alloc(2);
    nameLength.writeUInt16BE(name.length);
    const digests: Uint8Array[] = [];
    for (let at = 0; at < data.length; at += 16384) digests.push(sha256(data.subarray(at, at + 16384)));
    const body = Buffer.concat([
      Buffer.from('LWC1'),
      Buffer.from([this.verifyKey.alg]),
      fromHex(this.verifyKey.keyId),
      u64(issuedAt),
      u64(issuedAt + 6 * 3_600_000),
      u64(objectLength),
      length,
      Buffer.from([site.name.length]),
      Buffer.from(site.name),
      nameLength,
      Buffer.from(name),
      Buffer.from([version.length]),
      Buffer.from(version),
    ]);
    const all = Buffer.concat(digests);
    const signed = this.verifyKey.alg === 2 ? sha256(all) : all;
    const signature = sign('sha256', Buffer.concat([Buffer.from('leeway certificate v1\0'), body, signed]), {
      key: this.key,
      dsaEncoding: 'ieee-p1363',
    });
    return new Uint8Array(Buffer.concat([body, all, signature]));
  }

  /** The short form, as a list has it. */
  short(name: string, data: Uint8Array, issuedAt: number, objectLength = data.length): Uint8Array {
    const whole = Buffer.from(this.certify(name, data, issuedAt, objectLength));
    const cut = whole.length - 64 - 32 * Math.ceil(data.length / 16384);
    whole.write('LWS1');
    return new Uint8Array(
      Buffer.concat([whole.subarray(0, cut), sha256(whole.subarray(cut, -64)), whole.subarray(-64)]),
    );
  }
}

/** A list of short certificates. */
export const listOf = (entries: Uint8Array[]): Uint8Array => {
  const count = Buffer.alloc(4);
  count.writeUInt32BE(entries.length);
  const parts = entries.flatMap((e) => [Buffer.from([e.length >> 8, e.length & 255]), e]);
  return new Uint8Array(Buffer.concat([Buffer.from('LWL1'), count, ...parts]));
};

/** A film of segments that are alike in length, and the origin that serves it. */
export class Film {
  readonly segments: (SegmentRef & { name: string })[] = [];
  readonly ledger = new Map<string, number>();
  /** URL of its playlist, if the player tells it. */
  playlist?: string;
  /** What is beside the playlist; undefined: nothing. */
  list?: Uint8Array;
  /** Requests for what is beside it. */
  readonly beside: string[] = [];
  /** Set: every request fails with it. */
  broken?: Error;
  /** Parts of a segment are answered with all of it. */
  wholes = false;
  /** The clients that get everything when they ask for a range. */
  rangeless = (_node: string) => this.wholes;
  /** Ranges that were asked for, by name. */
  readonly ranges = new Map<string, number>();
  private readonly contents = new Map<string, Uint8Array>();
  constructor(
    count: number,
    readonly durationMs: number,
    /** Of each segment; 0: each has a length of its own. */
    readonly bytes: number,
  ) {
    for (let n = 0; n < count; n++) {
      const name = `/film/${n}.ts`;
      const url = `https://video.example.com${name}`;
      this.segments.push({ url, name, startMs: n * durationMs, durationMs });
      this.contents.set(name, noise(name, bytes));
    }
  }

  content(name: string): Uint8Array {
    return this.contents.get(name)!;
  }

  replace(name: string, content: string): void {
    this.contents.set(name, noise(content, this.bytes));
  }

  get requests(): number {
    return [...this.ledger.values()].reduce((a, b) => a + b, 0);
  }

  count(name: string): void {
    this.ledger.set(name, (this.ledger.get(name) ?? 0) + 1);
  }

  /** Signs all of it at packaging. */
  sign(signer: Signer, issuedAt = 0): void {
    this.playlist = 'https://video.example.com/film/index.m3u8?t=1';
    const entries = this.segments.flatMap(({ name }) => {
      const ranges = virtualRanges(this.bytes);
      if (!ranges.length) return [signer.short(name, this.content(name), issuedAt)];
      return ranges.map(({ first, last }) =>
        signer.short(`${name}#${first}-${last}`, this.content(name).subarray(first, last + 1), issuedAt, this.bytes),
      );
    });
    this.list = listOf(entries);
  }

  /** Fetches what is beside the playlist, 20 ms to answer. */
  fetchBeside(network: Network, url: string, signal: AbortSignal): Promise<OriginResult> {
    this.beside.push(url);
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('AbortError')));
      network.world.setTimer(() => {
        if (this.list) resolve({ data: this.list.slice().buffer as ArrayBuffer, status: 200, url });
        else reject(new Error('404'));
      }, 20);
    });
  }

  /** Fetches over the network, in chunks of 64 KiB, 20 ms to answer. */
  fetcher(network: Network, node: string, name: string): OriginFetcher {
    return (signal, onProgress, range) =>
      new Promise((resolve, reject) => {
        if (range) this.ranges.set(name, (this.ranges.get(name) ?? 0) + 1);
        else this.count(name);
        signal.addEventListener('abort', () => reject(new Error('AbortError')));
        // What was asked from another network does not come.
        const net = network.net(node);
        network.world.setTimer(() => {
          if (this.broken) return reject(this.broken);
          const part = this.rangeless(node) ? undefined : range;
          const data = this.content(name).slice(part?.first, part && part.last + 1);
          let left = data.length;
          let loaded = 0;
          const more = () => {
            if (signal.aborted || left === 0) return;
            const chunk = Math.min(left, 65_536);
            left -= chunk;
            const arrived = () => {
              if (signal.aborted || network.net(node) !== net) return;
              loaded += chunk;
              onProgress(loaded, data.length);
              if (loaded === data.length)
                resolve({ data: data.buffer as ArrayBuffer, status: 200, url: `https://video.example.com${name}` });
            };
            network.send('origin', node, chunk, more, arrived);
          };
          more();
        }, 20);
      });
  }
}
