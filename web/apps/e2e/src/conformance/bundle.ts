import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { buildDir } from '../paths.ts';

/** A player that comes as modules which import each other: a page gets them in one script, as its bundler makes it. */
export function bundle(name: string): string {
  const outfile = join(buildDir, name);
  mkdirSync(buildDir, { recursive: true });
  buildSync({
    entryPoints: [join(import.meta.dirname, name)],
    outfile,
    bundle: true,
    minify: true,
    format: 'iife',
    conditions: ['browser', 'production'],
    logLevel: 'error',
  });
  return outfile;
}
