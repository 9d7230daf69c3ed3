import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

const run = (command: string) => {
  const [tool, ...args] = command.split(' ') as [string, ...string[]];
  execFileSync(tool, args, { stdio: ['ignore', 'ignore', 'pipe'] });
};

/** Bytes that wait before a line; what comes beyond is lost. */
const queue = 131_072;
/**
 * Receive buffers of the namespace, bytes: least, first, most. While lines are shaped a connection's window is less than a line's queue.
 * Otherwise it is chance when the queue overflows, and a viewer whose segment waits a second for a lost packet chooses another rendition
 * than its neighbour, with Leeway and without.
 */
const buffers = '/proc/sys/net/ipv4/tcp_rmem';
const small = '4096 65536 131072';
let usual: string | undefined;
/** Bytes that a line sends at once: two packets, and what comes due between two ticks of a slow kernel clock. */
const burst = (rate: number) => Math.max(3100, Math.ceil(rate / 8 / 250));

/**
 * Shapes what servers on these ports send, by the kernel, each port at a rate of its own, or several on one line (bits per
 * second, headers included: about 0.957 of it is payload). As on a real line, it goes in packets of 1500 bytes: loopback's own of 64 KiB
 * come in one lump, and a player that times its segments by their first and last byte takes the line for up to 1.8 times
 * as fast, the more so the shorter the segment.
 */
export function shape(lines: { port: number | number[]; rate: number }[]): void {
  unshape();
  run('ip link set lo mtu 1500');
  usual ??= readFileSync(buffers, 'utf8');
  writeFileSync(buffers, small);
  run('tc qdisc add dev lo root handle 1: htb default 0');
  lines.forEach(({ port, rate }, i) => {
    run(`tc class add dev lo parent 1: classid 1:${10 + i} htb rate 10gbit`);
    run(`tc qdisc add dev lo parent 1:${10 + i} tbf rate ${rate}bit burst ${burst(rate)} limit ${queue}`);
    for (const sport of [port].flat()) {
      run(`tc filter add dev lo parent 1: protocol ip u32 match ip sport ${sport} 0xffff flowid 1:${10 + i}`);
    }
  });
}

/** Gives lines that are shaped other rates. */
export function reshape(lines: { rate: number }[]): void {
  lines.forEach(({ rate }, i) => {
    run(`tc qdisc change dev lo parent 1:${10 + i} tbf rate ${rate}bit burst ${burst(rate)} limit ${queue}`);
  });
}

/** Takes the shaping away. */
export function unshape(): void {
  if (usual) writeFileSync(buffers, usual);
  try {
    run('tc qdisc del dev lo root');
    run('ip link set lo mtu 65536');
  } catch {
    // Nothing was shaped.
  }
}
