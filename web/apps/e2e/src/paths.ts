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
  return browser('Chromium', process.env.LEEWAY_CHROMIUM, 'chromium', 'LEEWAY_CHROMIUM');
}

/** Firefox's path: $LEEWAY_FIREFOX, then `firefox-esr` on PATH. */
export function firefox(): string {
  return browser('Firefox', process.env.LEEWAY_FIREFOX, 'firefox-esr', 'LEEWAY_FIREFOX');
}

function browser(name: string, configured: string | undefined, command: string, variable: string): string {
  if (configured) return configured;
  try {
    return execFileSync('sh', ['-c', `command -v ${command}`], { encoding: 'utf8' }).trim();
  } catch {
    throw new Error(`e2e: no ${name}: set ${variable} or run "apt-get install ${command}"`);
  }
}
