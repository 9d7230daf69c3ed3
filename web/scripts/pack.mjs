// Makes the npm packages: node scripts/pack.mjs writes build/npm/<package>/ and one tarball each, ready for npm publish.
//
// In the workspace the packages export their sources, so that tests, the demo and the type checker need no build and
// never see a stale one; what goes out is put together here, with `publishConfig` folded into the manifest.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { scripts } from '../packages/leeway/build.mjs';
import { declarations, packages, web } from './declarations.mjs';

const root = join(web, '..');

/** The manifest that is published. */
function manifest(folder) {
  const source = JSON.parse(readFileSync(join(web, 'packages', folder, 'package.json'), 'utf8'));
  // `private` guards against publishing the sources from the workspace by mistake.
  const { private: _private, scripts: _scripts, devDependencies: _carried, publishConfig, ...rest } = source;
  const { access, provenance, ...published } = publishConfig;
  return { ...rest, ...published, publishConfig: { access, provenance } };
}

/** What is imported while the page runs is a file of its own, for the page's bundler to keep apart. */
const apart = {
  name: 'apart',
  setup({ onResolve }) {
    onResolve({ filter: /^\.\// }, ({ kind, path }) =>
      kind === 'dynamic-import' ? { path: path.replace(/\.ts$/, '.js'), external: true } : undefined,
    );
  },
};

/** What a package uses of another one's inside goes along with it: nothing but the front door of that one is published. */
const carried = {
  name: 'carried',
  setup({ onResolve }) {
    onResolve({ filter: /^@leeway\/core\/\w+$/ }, ({ path }) => ({ path: fileURLToPath(import.meta.resolve(path)) }));
  },
};

/** One readable ES module with a source map; other packages stay imports, so that a page has each of them once. */
async function bundle(folder, entry) {
  const absWorkingDir = join(web, 'packages', folder);
  const { outputFiles } = await build({
    absWorkingDir,
    entryPoints: [entry.source],
    outfile: `dist/${entry.file}.js`,
    bundle: true,
    packages: 'external',
    plugins: [carried, apart],
    format: 'esm',
    target: 'es2022',
    sourcemap: true,
    write: false,
  });
  return outputFiles.map(({ path, text }) => [path.slice(absWorkingDir.length + 1), text]);
}

/** The files of an entry, by path and text. The drop-in is the very scripts that a tracker serves. */
async function files(folder, entry) {
  if (entry.file !== 'leeway') return bundle(folder, entry);
  return Object.values(await scripts()).map(({ name, code }) => [`dist/${name}`, code]);
}

/** Writes each package, as it is published, to a folder of its own below `target`. */
export async function stage(target) {
  const types = declarations();
  for (const { folder, entries, parts = [] } of packages) {
    const to = join(target, folder);
    mkdirSync(join(to, 'dist'), { recursive: true });
    writeFileSync(join(to, 'package.json'), `${JSON.stringify(manifest(folder), null, 2)}\n`);
    copyFileSync(join(web, 'packages', folder, 'README.md'), join(to, 'README.md'));
    copyFileSync(join(root, 'LICENSE'), join(to, 'LICENSE'));
    for (const entry of entries) {
      writeFileSync(join(to, 'dist', `${entry.file}.d.ts`), types[folder][entry.file]);
      for (const [path, text] of await files(folder, entry)) writeFileSync(join(to, path), text);
    }
    for (const part of parts)
      for (const [path, text] of await bundle(folder, part)) writeFileSync(join(to, path), text);
  }
}

/** Packs what `stage` wrote. Gives npm's account of each tarball: name, version, filename, size, files. */
export function pack(target) {
  const folders = packages.map(({ folder }) => `./${folder}`);
  const out = execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--loglevel=error', ...folders], {
    cwd: target,
    encoding: 'utf8',
  });
  return JSON.parse(out);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const target = join(root, 'build/npm');
  rmSync(target, { recursive: true, force: true });
  await stage(target);
  for (const { name, version, filename, size } of pack(target)) {
    console.log(`${name} ${version}: build/npm/${filename}, ${size} bytes`);
  }
}
