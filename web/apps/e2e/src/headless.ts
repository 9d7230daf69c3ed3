import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { binary, buildDir } from './paths.ts';

/** What `leeway viewer` prints at the end; the fields that are looked at here. */
export interface Summary {
  /** Own peer ID. */
  session: string;
  ended: string;
  offload: number;
  links_opened: number;
  banned: number;
  stats: { bytes: Record<string, number>; uploaded?: Record<string, number>; rejected_bytes?: number; stalls?: number };
}

/** A headless viewer that watches a film's highest rendition for so long; answers its summary when it has left. */
export function headlessViewer(manifest: string, tracker: string, leave: string): Promise<Summary> {
  return play(manifest, tracker, leave, ['--rendition', 'highest', '--buffer', '20s']);
}

/** One that plays the parts of a low-latency stream. It leaves when it is told to, or after `most`; both answer its summary. */
export function partsViewer(
  manifest: string,
  tracker: string,
  most: string,
  rendition: string,
): () => Promise<Summary> {
  let viewer: ChildProcess | undefined;
  const summary = play(manifest, tracker, most, ['--rendition', rendition, '--low-latency'], (child) => {
    viewer = child;
  });
  return () => {
    viewer?.kill('SIGTERM');
    return summary;
  };
}

async function play(
  manifest: string,
  tracker: string,
  leave: string,
  how: string[],
  started?: (child: ChildProcess) => void,
): Promise<Summary> {
  const args = ['viewer', ...how, '--leave', leave, '--tracker', `${tracker.replace('http', 'ws')}/`, manifest];
  return JSON.parse(await said(binary, args, '', started)) as Summary;
}

/** Runs a viewer of the lab that sends nothing right: one bit of each message is wrong. Answers its peer ID when it has left. */
export async function polluter(manifest: string, seconds: number): Promise<string> {
  const plan = { LeaveAfter: seconds * 1e9, Pollutes: 'all' };
  const order = JSON.stringify({ Manifest: manifest, Peers: true, Parts: true, Plan: plan });
  const told = JSON.parse(await said(join(buildDir, 'leeway-lab'), ['bench-child', 'swarm', 'viewer'], order));
  return told.Summary.session;
}

/** What a program writes until it ends. */
function said(program: string, args: string[], input = '', started?: (child: ChildProcess) => void): Promise<string> {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'ignore'] });
  started?.(child);
  child.stdin.end(input);
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  return new Promise((resolve) => child.once('exit', () => resolve(text)));
}
