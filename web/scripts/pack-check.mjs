// Installs the packages as a user would, from their tarballs into an empty project without a registry, and uses them:
// every example of the documents is type-checked, bundled and run against a page made of fakes. With a folder as its argument it
// takes the tarballs of a release from there; otherwise it packs its own.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { runInNewContext } from 'node:vm';
import { build } from 'esbuild';
import { scripts } from '../packages/leeway/build.mjs';
import { packages, web } from './declarations.mjs';
import { pack, stage } from './pack.mjs';
import { players } from './players.mjs';

const documents = [
  'docs/embedding.md',
  'README.md',
  ...packages.map(({ folder }) => `web/packages/${folder}/README.md`),
];

/** What a tarball holds, to the file: nothing of the sources, the tests or the tools goes out. */
const always = ['LICENSE', 'README.md', 'dist/index.d.ts', 'dist/index.js', 'dist/index.js.map', 'package.json'];
const dropin = Object.values(await scripts());
const more = {
  core: ['compose', 'disk', 'seldom'].flatMap((name) => [`dist/${name}.js`, `dist/${name}.js.map`]),
  leeway: ['dist/leeway.d.ts', ...dropin.map(({ name }) => `dist/${name}`)],
};

const { version } = JSON.parse(readFileSync(join(web, 'package.json'), 'utf8'));

/** npm's account of the tarballs of a release. */
function listed(folder) {
  const files = packages.map(({ name }) => `./${name.replace('@', '').replace('/', '-')}-${version}.tgz`);
  const out = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts', '--loglevel=error', ...files], {
    cwd: folder,
    encoding: 'utf8',
  });
  return JSON.parse(out);
}

function checkTarballs(tarballs) {
  for (const [i, { folder, name }] of packages.entries()) {
    const { files, ...tarball } = tarballs[i];
    assert.equal(tarball.name, name);
    assert.equal(tarball.version, version, `${name}: version`);
    assert.deepEqual(
      files.map(({ path }) => path).sort(),
      [...always, ...(more[folder] ?? [])].sort(),
      `${name}: files`,
    );
  }
}

/** The workspace's player without the scripts of its makers: npm 10 runs those of a folder although it is told not to. */
function copyOf(player, to) {
  const from = join(web, 'node_modules', player);
  const { scripts: _, ...manifest } = JSON.parse(readFileSync(join(from, 'package.json'), 'utf8'));
  mkdirSync(to);
  writeFileSync(join(to, 'package.json'), JSON.stringify(manifest));
  for (const part of ['dist', 'index.d.ts']) symlinkSync(join(from, part), join(to, part));
  return to;
}

/** An empty project with the tarballs and the players; npm has neither a registry nor a cache. */
function install(project, tarballs, from, scratch) {
  const dependencies = {};
  for (const { npm: name } of players) dependencies[name] = `file:${copyOf(name, join(scratch, `npm-${name}`))}`;
  for (const { name, filename } of tarballs) dependencies[name] = `file:${join(from, filename)}`;
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), JSON.stringify({ private: true, type: 'module', dependencies }));
  const options = ['--offline', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  execFileSync('npm', ['install', ...options, '--cache', join(scratch, 'cache')], { cwd: project, stdio: 'pipe' });
}

/** Nothing came along, and no package asks for anything but the others. */
function checkDependencies(project) {
  const own = packages.map(({ name }) => name);
  const modules = join(project, 'node_modules');
  const lock = JSON.parse(readFileSync(join(modules, '.package-lock.json'), 'utf8'));
  const installed = Object.keys(lock.packages).filter((path) => path.startsWith('node_modules/'));
  assert.deepEqual(
    installed.sort(),
    [...own, ...players.map(({ npm }) => npm)].map((name) => `node_modules/${name}`).sort(),
  );
  for (const name of own) {
    const manifest = JSON.parse(readFileSync(join(modules, name, 'package.json'), 'utf8'));
    for (const [on, range] of Object.entries(manifest.dependencies ?? {})) {
      assert(own.includes(on), `${name} depends on ${on}`);
      assert.equal(range, manifest.version, `${name}: version of ${on}`);
    }
    assert.equal(manifest.private, undefined, `${name} cannot be published`);
    // npm refuses a provenance whose repository is not the one that built it.
    const { url, directory } = manifest.repository;
    assert.equal(url, 'git+https://github.com/leeway-video/leeway.git', `${name}: repository`);
    assert(existsSync(join(web, '..', directory, 'package.json')), `${name}: there is no folder ${directory}`);
    assert.deepEqual(manifest.publishConfig, { access: 'public', provenance: true }, `${name}: publishConfig`);
    assert.equal(manifest.license, 'Apache-2.0', `${name}: license`);
    assert.deepEqual(manifest.files, ['dist'], `${name}: files`);
    for (const { types, default: code } of Object.values(manifest.exports)) {
      for (const path of [types, code]) assert(existsSync(join(modules, name, path)), `${name}: there is no ${path}`);
    }
  }
}

/** The TypeScript and JavaScript examples of a document, each a module of its own. */
function examples() {
  return documents.flatMap((document) => {
    const text = readFileSync(join(web, '..', document), 'utf8');
    const blocks = [...text.matchAll(/^```(?:ts|js)\n(.*?)^```$/gms)].map(([, code]) => code);
    assert(blocks.length > 0, `${document} has no example`);
    return blocks.map((code) => ({ document, code }));
  });
}

/** What an example takes for granted: a player, and the library where it does not make it itself. */
function given({ code }, kind) {
  const lines = [];
  const used = code.replaceAll(/import .*|\/\/.*/g, '');
  for (const player of players) {
    if (new RegExp(`\\b${player.global}\\b`).test(used)) lines.push(player[kind]);
  }
  if (!code.includes('createLeeway(')) {
    lines.push("import type { Leeway } from 'leeway';", 'declare const leeway: Leeway;');
  }
  return `${lines.join('\n')}\n${code}`;
}

/** Uses that must not compile: were a type `any`, or missing, the compiler would say that an expected error is none. */
const misuse = `
import Hls from 'hls.js';
import { attachHls, attachHlsClass, createLeeway, type HlsPlayer, type Leeway } from 'leeway';
import type { LeewayEvents } from '@leeway/core';
declare const leeway: Leeway;
// @ts-expect-error: no tracker
createLeeway({});
// @ts-expect-error: no such option
createLeeway({ tracker: 'wss://tracker.example.com', trackers: 2 });
const player: HlsPlayer = new Hls();
attachHlsClass(leeway, Hls);
// @ts-expect-error: no tracker, nor anything else
createLeeway();
// @ts-expect-error: the library comes first
attachHls({}, player);
// @ts-expect-error: no player
attachHls(leeway, {});
// @ts-expect-error: the class, not a player
attachHls(leeway, Hls);
// @ts-expect-error: a player, not the class
attachHlsClass(leeway, player);
// @ts-expect-error: no such event
leeway.on('nothing', () => {});
// @ts-expect-error: no such code
leeway.on('notice', ({ code }) => code === 'no-such-code');
// @ts-expect-error: a number
leeway.stats().titles[0]!.viewers.length;
// @ts-expect-error: a closed set
export const event: LeewayEvents['off'] = { manifest: '', reason: 'no-such-reason' };
// @ts-expect-error: internal
import { createSession } from '@leeway/core';
// @ts-expect-error: internal, though a public type mentions it
import type { EngineEvents } from '@leeway/core';
// @ts-expect-error: no way in but the front door
import '@leeway/core/dist/index.js';
import type {} from 'leeway/leeway.js';
export const global: Leeway | undefined = window.leeway;
`;

/** Types as strict as they come, with the declarations themselves checked, as bundlers and as Node resolve them. */
function checkTypes(project, codes) {
  const src = join(project, 'src');
  mkdirSync(src);
  for (const [i, example] of codes.entries()) {
    writeFileSync(join(src, `example${i}.ts`), given(example, 'real'));
  }
  writeFileSync(join(src, 'misuse.ts'), misuse);
  for (const { npm, misuse } of players) {
    if (misuse) writeFileSync(join(src, `misuse-${npm}.ts`), misuse);
  }
  for (const [module, moduleResolution] of [
    ['ESNext', 'Bundler'],
    ['NodeNext', 'NodeNext'],
  ]) {
    const compilerOptions = {
      ...{ module, moduleResolution, target: 'ES2022', lib: ['ES2022', 'DOM'], types: [], noEmit: true },
      ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: false },
    };
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['src'] }));
    const tsc = join(web, 'node_modules/typescript/bin/tsc');
    const { status, stdout } = spawnSync(process.execPath, [tsc, '-p', project, '--pretty', 'false'], {
      cwd: project,
      encoding: 'utf8',
    });
    assert.equal(status, 0, `types, ${moduleResolution}:\n${stdout}`);
  }
}

/** Bundles a module of the project for the browser. */
async function bundle(project, contents) {
  const { outputFiles, metafile } = await build({
    stdin: { contents, resolveDir: project, loader: 'ts' },
    absWorkingDir: project,
    bundle: true,
    platform: 'browser',
    format: 'esm',
    minify: true,
    metafile: true,
    write: false,
    logLevel: 'silent',
  });
  const [output] = Object.values(metafile.outputs);
  assert.deepEqual(output.imports, [], 'imports are left in the bundle');
  return { code: outputFiles[0].text, inputs: Object.keys(metafile.inputs), bytes: output.bytes };
}

/** The smallest page on which the library starts. */
function page() {
  const sockets = [];
  const seen = { listeners: [], schemes: [] };
  const timers = [];
  const window = {
    ...{ URL, AbortController, TextEncoder, crypto, performance, isSecureContext: true, RTCPeerConnection: class {} },
    ...{
      setTimeout: (callback) => timers.push(callback),
      clearTimeout: () => {},
      navigator: {},
      location: { hostname: 'video.example.com' },
    },
    document: { visibilityState: 'visible', addEventListener: () => {}, removeEventListener: () => {} },
    addEventListener: () => {},
    removeEventListener: () => {},
    WebSocket: class {
      constructor(url) {
        sockets.push(url);
      }
    },
  };
  for (const player of players) Object.assign(window, player.page(seen));
  window.window = window;
  return { window, sockets, seen, timers };
}

/** An example that makes the library must connect to the tracker, and one that has a player must be attached to it. */
async function run(project, example) {
  const { document, code } = example;
  const real = await bundle(project, given(example, 'real'));
  const copies = real.inputs.filter((path) => path.endsWith('core/dist/index.js'));
  assert.deepEqual(copies, ['node_modules/@leeway/core/dist/index.js'], `${document}: copies of the core`);
  const fake = await bundle(project, given(example, 'fake'));
  const { window, sockets, seen, timers } = page();
  runInNewContext(fake.code, window);
  for (const callback of timers.splice(0)) {
    callback(); // a player that asks for no segment is waited for a second
  }
  assert.deepEqual(sockets, ['wss://tracker.example.com/'], `${document}: its example does not connect`);
  for (const { attach, attached } of players) {
    if (!code.includes(`${attach}(`)) continue;
    assert(attached(window, seen), `${document}: its example does not put the plug-in in`);
    assert(seen.listeners.length > 0, `${document}: its example does not listen to the player`);
  }
}

/** Without a page there is nothing to do, but a server that renders pages imports the module all the same. */
async function checkModules(project) {
  const modules = join(project, 'node_modules');
  for (const { folder, name } of packages) {
    const dist = join(modules, name, 'dist');
    const module = await import(pathToFileURL(join(dist, 'index.js')).href);
    if (/^(core|leeway)$/.test(folder)) assert.equal(module.version, version, `${name}: what it says of its version`);
    const declared = readFileSync(join(dist, 'index.d.ts'), 'utf8');
    const values = [...declared.matchAll(/^export declare (?:const|function|class) (\w+)/gm)].map(([, value]) => value);
    // The entry of `leeway` only passes on.
    if (folder !== 'leeway') assert.deepEqual(Object.keys(module).sort(), values.sort(), `${name}: declared exports`);
    const map = JSON.parse(readFileSync(join(dist, 'index.js.map'), 'utf8'));
    assert.equal(map.sourcesContent.length, map.sources.length, `${name}: the map lacks sources`);
    const { bytes } = await bundle(project, `import '${name}';`);
    assert(bytes < 100, `${name}: a module that is imported and not used leaves ${bytes} bytes in a bundle`);
  }
  const split = await build({
    stdin: { contents: "import { createLeeway } from 'leeway'; createLeeway({ tracker: 'x' });", resolveDir: project },
    ...{
      absWorkingDir: project,
      bundle: true,
      splitting: true,
      format: 'esm',
      outdir: 'out',
      write: false,
      metafile: true,
    },
  });
  for (const [file, name] of [
    ['compose.js', 'composeEngine'],
    ['seldom.js', 'createStreams'],
    ['disk.js', 'openDisk'],
  ]) {
    const later = Object.values(split.metafile.outputs).find(({ entryPoint }) => entryPoint?.endsWith(file));
    assert(later?.exports.includes(name), `a bundler that splits does not keep ${file} apart`);
  }
  for (const { name, code } of dropin) {
    assert.equal(readFileSync(join(modules, 'leeway/dist', name), 'utf8'), code, `${name} differs`);
  }
}

async function main() {
  const scratch = mkdtempSync(join(tmpdir(), 'leeway-pack-'));
  try {
    const begin = Date.now();
    const [made] = process.argv.slice(2);
    if (!made) await stage(scratch);
    const tarballs = made ? listed(made) : pack(scratch);
    checkTarballs(tarballs);
    const project = join(scratch, 'project');
    install(project, tarballs, made ? resolve(made) : scratch, scratch);
    checkDependencies(project);
    const codes = examples();
    checkTypes(project, codes);
    for (const example of codes) if (example.code.includes('createLeeway(')) await run(project, example);
    await checkModules(project);
    const sizes = tarballs.map(({ name, size }) => `${name} ${size}`).join(', ');
    console.log(`packages: ${sizes} bytes packed; ${codes.length} examples; ${Date.now() - begin} ms`);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

await main();
