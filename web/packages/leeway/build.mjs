// Builds the drop-in: dist/leeway.js and the scripts that it loads, the engine once there is a picture and the adapter of a player. The npm packages are web/scripts/pack.mjs's.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync } from 'node:zlib';
import { build } from 'esbuild';
import { minify } from 'terser';

const here = fileURLToPath(new URL('.', import.meta.url));

const { version } = JSON.parse(readFileSync(`${here}package.json`, 'utf8'));
/** What the first script and the engine load: the engine, the adapters of players and so on: the largest that go out, bytes after brotli. */
const parts = JSON.parse(readFileSync(`${here}parts.json`, 'utf8'));

/** The same with the first script, which the first picture waits beside. */
export const budgets = { script: 20_000, ...parts };

const target = 'es2022';

/** Properties that nothing outside of the scripts knows (docs/decisions/0117-internal-names-are-short.md). */
const renamed = JSON.parse(readFileSync(`${here}renamed.json`, 'utf8'));
const mangleProps = new RegExp(`^(${renamed.join('|')})$`);

/** Ways to minify that come to the same. Which is the smallest after brotli differs from script to script, by up to 130 bytes. */
const ways = [{}, { hoist_funs: true }, { hoist_vars: true }];

/** The code in so many ways. No getter of the library does anything but answer. */
const minified = (text) =>
  Promise.all(
    ways.map(async (way) => {
      const { code } = await minify(text, {
        ecma: 2020,
        compress: { passes: 3, pure_getters: true, sequences: false, ...way },
      });
      return code;
    }),
  );

const smallest = (codes) => codes.reduce((a, b) => (sizes({ code: a }).brotli <= sizes({ code: b }).brotli ? a : b));

/** In place of the core's own ways to the engine, and to what the engine loads. */
const byScript = {
  name: 'by-script',
  setup({ onResolve }) {
    onResolve({ filter: /\/(load|later)\.ts$/ }, ({ path }) => ({
      path: `${here}src/${path.split('/').at(-1)}`,
      sideEffects: false,
    }));
  },
};

/** In an adapter, in place of what the first script has and hands on. */
const handedOn = {
  name: 'handed-on',
  setup({ onResolve }) {
    onResolve({ filter: /\/media\.ts$/ }, () => ({ path: `${here}src/media.ts`, sideEffects: false }));
  },
};

/**
 * Has Chromium compile all functions of a script as it comes, away from the page's thread, not each at its first call while the player
 * starts (docs/decisions/0113-scripts-are-compiled-as-they-come.md). Other browsers take it for a comment.
 */
const atOnce = '//# allFunctionsCalledOnLoad\n';

/** Has esbuild bundle modules. */
const bundled = (entryPoints, { define = {}, plugins = [], mangleCache = {} } = {}) =>
  build({
    absWorkingDir: here,
    entryPoints,
    outdir: 'dist',
    plugins: [byScript, ...plugins],
    // Then it is minified to 1/0.
    define: { 'Number.POSITIVE_INFINITY': 'Infinity', ...define },
    mangleProps,
    mangleCache,
    metafile: true,
    bundle: true,
    minify: true,
    format: 'iife',
    target,
    legalComments: 'none',
    external: ['hls.js'],
    write: false,
  });

/** The short names, the same in all scripts: what one names, the other finds. */
const { mangleCache } = await bundled(['src/dropin.ts', ...Object.keys(parts).map((part) => `src/parts/${part}.ts`)]);

/** One script: esbuild bundles the modules, terser minifies. */
async function made(entry, { define, plugins, hint = '' } = {}) {
  const { outputFiles, metafile } = await bundled([entry], { define, plugins, mangleCache });
  const codes = (await minified(outputFiles[0].text)).map((code) => hint + code);
  const [{ inputs: left }] = Object.values(metafile.outputs);
  const holds = Object.keys(left).filter((path) => left[path].bytesInOutput > 0);
  return { codes, code: smallest(codes), inputs: Object.keys(metafile.inputs), holds };
}

/** What the engine loads. Their hashes are there, and not in the first script. */
const later = ['seldom', 'disk'];

/** What few pages need, or none as the player starts. */
const seldom = [...later, 'more'];

/** Stand for the hashes of the parts in the first script. */
const unknown = Object.fromEntries(
  Object.keys(parts)
    .filter((part) => !later.includes(part))
    .map((part) => [part, `<hash of ${part}>`]),
);

const hashOf = (code) => createHash('sha256').update(code).digest('base64');
const integrityOf = (code) => `sha256-${hashOf(code)}`;

let once;

/**
 * The scripts in memory: the code, the modules that it was made of, and those of which something is left in it. A process makes them once,
 * as it takes seconds.
 */
export const scripts = () => (once ??= make());

async function make() {
  const buildVersion = JSON.stringify(version);
  const script = await made('src/dropin.ts', {
    define: { buildVersion, hashes: JSON.stringify(unknown) },
    hint: atOnce,
  });
  let { codes } = script;
  const part = async (name, define) => ({
    name: `leeway-${version}-${name}.js`,
    ...(await made(`src/parts/${name}.ts`, { define, plugins: [handedOn], hint: seldom.includes(name) ? '' : atOnce })),
  });
  const all = {};
  const define = { buildVersion };
  for (const name of later) {
    all[name] = await part(name);
    define[`${name}Hash`] = JSON.stringify(integrityOf(all[name].code));
  }
  for (const name in unknown) {
    all[name] = await part(name, define);
    // Without what all have in common: the first script has no room for it.
    const [hash] = hashOf(all[name].code).split('=');
    codes = codes.map((code) => code.replace(unknown[name], hash));
  }
  return { script: { ...script, name: 'leeway.js', code: smallest(codes) }, ...all };
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
