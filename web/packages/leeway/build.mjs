// Builds the drop-in: dist/leeway.js and the script that it loads once there is a picture. The npm packages are web/scripts/pack.mjs's.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync } from 'node:zlib';
import { build } from 'esbuild';
import { minify } from 'terser';

const here = fileURLToPath(new URL('.', import.meta.url));

const { version } = JSON.parse(readFileSync(`${here}package.json`, 'utf8'));
const names = { script: 'leeway.js', engine: `leeway-${version}-engine.js` };

/** The largest that go out, bytes after brotli: what the first picture waits beside, and what comes after it. */
export const budgets = { script: 20_000, engine: 32_000 };

const target = 'es2022';

/** In place of the core's own way to the engine. */
const byScript = {
  name: 'by-script',
  setup({ onResolve }) {
    onResolve({ filter: /\/load\.ts$/ }, () => ({ path: `${here}src/load.ts` }));
  },
};

/** One script: esbuild bundles the modules, terser minifies. No property is renamed: what one script names, the other finds. */
async function made(entry) {
  const { outputFiles, metafile } = await build({
    absWorkingDir: here,
    entryPoints: [entry],
    plugins: [byScript],
    define: {
      engineFile: JSON.stringify(`${names.engine}?${unknown.tag}`),
      engineIntegrity: JSON.stringify(unknown.integrity),
    },
    metafile: true,
    bundle: true,
    minify: true,
    format: 'iife',
    target,
    legalComments: 'none',
    external: ['hls.js'],
    write: false,
  });
  const { code } = await minify(outputFiles[0].text, { ecma: 2020, compress: { passes: 2 } });
  return { code, inputs: Object.keys(metafile.inputs) };
}

/** Stands for the hash of the second script, whose names are the first one's. The tag is for caches: a version is built often. */
const unknown = { integrity: '<integrity of the engine>', tag: '<tag>' };

/** Both scripts in memory: the code, and the modules that it was made of. */
export async function scripts() {
  const [script, engine] = await Promise.all(['src/dropin.ts', 'src/engine.ts'].map(made));
  const digest = createHash('sha256').update(engine.code).digest();
  const code = script.code
    .replace(unknown.integrity, `sha256-${digest.toString('base64')}`)
    .replace(unknown.tag, digest.toString('hex').slice(0, 8));
  return {
    script: { name: names.script, code, inputs: script.inputs },
    engine: { name: names.engine, code: engine.code, inputs: engine.inputs },
  };
}

/** Bytes of a script, as it is and after brotli. */
export function sizes({ code }) {
  return { bytes: code.length, brotli: brotliCompressSync(code).length };
}

async function main() {
  rmSync(`${here}dist`, { recursive: true, force: true });
  mkdirSync(`${here}dist`, { recursive: true });
  for (const [kind, script] of Object.entries(await scripts())) {
    writeFileSync(`${here}dist/${script.name}`, script.code);
    const { bytes, brotli } = sizes(script);
    console.log(`${script.name}: ${bytes} bytes, ${brotli} after brotli (at most ${budgets[kind]})`);
    if (brotli > budgets[kind]) console.warn(`${script.name} is ${brotli - budgets[kind]} bytes over its budget`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
