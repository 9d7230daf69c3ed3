// Builds dist/leeway.js (the drop-in), dist/leeway.mjs (the package's entry, whole) and the type declarations.
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync } from 'node:zlib';
import { build } from 'esbuild';
import { minify } from 'terser';
import { minifySync } from 'vite';
import { internalNames, modern, quoted } from './minify.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));

/** The largest drop-in that goes out, bytes after brotli. */
export const budget = 25_000;

const banner = '/* Leeway 0.1.0, Apache-2.0 */\n';
const target = 'es2022';

/** Bundles an entry; the code is returned, not written. */
async function bundle(entry, format, more = {}) {
  const { outputFiles } = await build({
    absWorkingDir: here,
    entryPoints: [entry],
    bundle: true,
    format,
    target,
    legalComments: 'none',
    external: ['hls.js'],
    write: false,
    ...more,
  });
  return outputFiles[0].text;
}

/**
 * The drop-in: bundled and its properties renamed by esbuild, its functions and variables inlined where they are used once by
 * terser, made small by the minifier of Vite: each is the best at that.
 */
export async function dropin() {
  const code = await bundle('src/dropin.ts', 'iife', {
    minifyIdentifiers: true,
    mangleProps: internalNames(),
  });
  const inlined = await minify(modern(code), { ecma: 2020, compress: { passes: 2 }, mangle: false });
  const small = minifySync('leeway.js', inlined.code, {
    module: false,
    compress: { target, treeshake: { propertyReadSideEffects: false } },
    mangle: { toplevel: true },
    codegen: { removeWhitespace: true },
  });
  if (small.errors.length > 0) throw new Error(small.errors[0].message);
  return quoted(small.code);
}

/** Builds the drop-in in memory and tells its size. */
export async function measure() {
  const code = await dropin();
  return { bytes: code.length, brotli: brotliCompressSync(code).length };
}

async function main() {
  rmSync(`${here}dist`, { recursive: true, force: true });
  mkdirSync(`${here}dist`, { recursive: true });
  writeFileSync(`${here}dist/leeway.js`, await dropin());
  writeFileSync(`${here}dist/leeway.mjs`, banner + (await bundle('src/index.ts', 'esm')));
  execFileSync(
    process.execPath,
    [fileURLToPath(import.meta.resolve('typescript/bin/tsc')), '-p', 'tsconfig.build.json'],
    {
      cwd: here,
      stdio: 'inherit',
    },
  );
  const { bytes, brotli } = await measure();
  console.log(`leeway.js: ${bytes} bytes, ${brotli} after brotli (at most ${budget})`);
  if (brotli > budget) console.warn(`leeway.js is ${brotli - budget} bytes over its budget`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
