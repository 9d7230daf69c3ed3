import { execFileSync } from 'node:child_process';

const tc = (...args: string[]) => execFileSync('tc', args, { stdio: ['ignore', 'ignore', 'pipe'] });

/** Shapes what servers on these ports send, by the kernel, each port at a rate of its own (bits per second). */
export function shape(ports: { port: number; rate: number }[]): void {
  unshape();
  tc('qdisc', 'add', 'dev', 'lo', 'root', 'handle', '1:', 'htb', 'default', '0');
  ports.forEach(({ port, rate }, i) => {
    const id = `1:${10 + i}`;
    tc(
      'class',
      'add',
      'dev',
      'lo',
      'parent',
      '1:',
      'classid',
      id,
      'htb',
      'rate',
      `${rate}bit`,
      'burst',
      '16k',
      'cburst',
      '16k',
    );
    tc('qdisc', 'add', 'dev', 'lo', 'parent', id, 'pfifo', 'limit', '100');
    const match = ['u32', 'match', 'ip', 'sport', String(port), '0xffff', 'flowid', id];
    tc('filter', 'add', 'dev', 'lo', 'parent', '1:', 'protocol', 'ip', ...match);
  });
}

/** Takes the shaping away. */
export function unshape(): void {
  try {
    tc('qdisc', 'del', 'dev', 'lo', 'root');
  } catch {
    // Nothing was shaped.
  }
}
