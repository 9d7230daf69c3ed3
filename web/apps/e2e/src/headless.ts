import { spawn } from 'node:child_process';
import { binary } from './paths.ts';

/** What `leeway viewer` prints at the end; the fields that are looked at here. */
export interface Summary {
  ended: string;
  offload: number;
  links_opened: number;
  banned: number;
  stats: { bytes: Record<string, number>; uploaded?: Record<string, number>; rejected_bytes?: number; stalls?: number };
}

/** A headless viewer that watches a film's highest rendition for so long; answers its summary when it has left. */
export function headlessViewer(manifest: string, tracker: string, leave: string): Promise<Summary> {
  const args = ['viewer', '--rendition', 'highest', '--buffer', '20s', '--leave', leave];
  const child = spawn(binary, [...args, '--tracker', `${tracker.replace('http', 'ws')}/`, manifest], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  return new Promise((resolve) => child.once('exit', () => resolve(JSON.parse(text) as Summary)));
}
