import { spawn } from 'node:child_process';
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

/** One that plays the parts of a low-latency stream. */
export function partsViewer(manifest: string, tracker: string, leave: string, rendition: string): Promise<Summary> {
  return play(manifest, tracker, leave, ['--rendition', rendition, '--low-latency']);
}

async function play(manifest: string, tracker: string, leave: string, how: string[]): Promise<Summary> {
  const args = ['viewer', ...how, '--leave', leave, '--tracker', `${tracker.replace('http', 'ws')}/`, manifest];
  return JSON.parse(await said(binary, args)) as Summary;
}

/** Runs a viewer of the lab that sends nothing right: one bit of each message is wrong. Answers its peer ID when it has left. */
export async function polluter(manifest: string, seconds: number): Promise<string> {
  const plan = { LeaveAfter: seconds * 1e9, Pollutes: 'all' };
  const order = JSON.stringify({ Manifest: manifest, Peers: true, Parts: true, Plan: plan });
  const told = JSON.parse(await said(join(buildDir, 'leeway-lab'), ['bench-child', 'swarm', 'viewer'], order));
  return told.Summary.session;
}

/** What a program writes until it ends. */
function said(program: string, args: string[], input = ''): Promise<string> {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'ignore'] });
  child.stdin.end(input);
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  return new Promise((resolve) => child.once('exit', () => resolve(text)));
}
