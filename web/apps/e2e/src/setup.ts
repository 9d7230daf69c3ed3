import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { binary, buildDir, figuresFile } from './paths.ts';

/** Once before the first file: what the suite needs is there, and the last run's figures are gone. */
export default function setup(): void {
  if (process.env.LEEWAY_E2E_INSIDE !== '1') throw new Error('e2e: start the suite with ./run, it makes the namespace');
  mkdirSync(buildDir, { recursive: true });
  rmSync(figuresFile, { force: true });
  if (!existsSync(binary)) throw new Error(`e2e: ${binary} is missing: run "make build" first`);
}
