import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

/** The repository's root. */
export const root = join(import.meta.dirname, '../../../..');
/** What `make build` wrote. */
export const buildDir = join(root, 'build');
export const binary = join(buildDir, 'leeway');
/** One figure a line, JSON. */
export const figuresFile = join(buildDir, 'e2e.json');

/** Chromium's path: $LEEWAY_CHROMIUM, then `chromium` on PATH. */
export function chromium(): string {
  const configured = process.env.LEEWAY_CHROMIUM;
  if (configured) return configured;
  try {
    return execFileSync('sh', ['-c', 'command -v chromium'], { encoding: 'utf8' }).trim();
  } catch {
    throw new Error('e2e: no Chromium: set LEEWAY_CHROMIUM or run "apt-get install chromium"');
  }
}
