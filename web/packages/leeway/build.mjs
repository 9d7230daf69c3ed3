// Builds dist/leeway.js, the drop-in. The npm packages are web/scripts/pack.mjs's.
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

const target = 'es2022';

/**
 * The drop-in: bundled and its properties renamed by esbuild, its functions and variables inlined where they are used once by
 * terser, made small by the minifier of Vite: each is the best at that.
 */
export async function dropin() {
  const { outputFiles } = await build({
    absWorkingDir: here,
    entryPoints: ['src/dropin.ts'],
    bundle: true,
    format: 'iife',
    target,
    legalComments: 'none',
    external: ['hls.js'],
    write: false,
    minifyIdentifiers: true,
    mangleProps: internalNames(),
  });
  const inlined = await minify(modern(outputFiles[0].text), { ecma: 2020, compress: { passes: 2 }, mangle: false });
  const small = minifySync('leeway.js', inlined.code, {
    module: false,
    compress: { target, treeshake: { propertyReadSideEffects: false } },
    mangle: { toplevel: true },
    codegen: { removeWhitespace: true },
  });
  if (small.errors.length > 0) throw new Error(small.errors[0].message);
  return quoted(small.code);
}

const sizes = (code) => ({ bytes: code.length, brotli: brotliCompressSync(code).length });

/** Builds the drop-in in memory and tells its size. */
export async function measure() {
  return sizes(await dropin());
}

async function main() {
  rmSync(`${here}dist`, { recursive: true, force: true });
  mkdirSync(`${here}dist`, { recursive: true });
  const code = await dropin();
  writeFileSync(`${here}dist/leeway.js`, code);
  const { bytes, brotli } = sizes(code);
  console.log(`leeway.js: ${bytes} bytes, ${brotli} after brotli (at most ${budget})`);
  if (brotli > budget) console.warn(`leeway.js is ${brotli - budget} bytes over its budget`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
