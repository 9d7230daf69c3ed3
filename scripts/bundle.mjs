// Copies the built browser side to where leeway and leeway-lab embed it from: node scripts/bundle.mjs
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const root = join(import.meta.dirname, '..');
const scripts = join(root, 'web/packages/leeway/dist');
const demo = join(root, 'web/apps/demo/dist');
const check = join(root, 'web/apps/check/dist/check.html');
const doctor = join(root, 'web/apps/doctor/dist/doctor.html');
const bench = join(root, 'web/apps/bench/dist/bench.js');
const rival = join(root, 'web/apps/bench/dist/rival.js');
const target = join(root, 'internal/webdist/files');
const lab = join(root, 'internal/lab/bench/demopage/files');

for (const path of [join(scripts, 'leeway.js'), join(demo, 'index.html'), check, doctor, bench, rival]) {
  if (!existsSync(path)) throw new Error(`bundle: ${path} is missing: run "npm run build" in web/ first`);
}
const kept = new Set(['.gitignore', 'demo', 'check.html', 'doctor.html']);
for (const file of readdirSync(scripts)) {
  const text = readFileSync(join(scripts, file));
  const small = brotliCompressSync(text, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: text.length },
  });
  // The binary knows its version.
  const name = file.replace(/^leeway-.*-(?=\w+\.js$)/, 'leeway-');
  writeFileSync(join(target, name), text);
  writeFileSync(join(target, `${name}.br`), small);
  kept.add(name).add(`${name}.br`);
  console.log(`${file}: ${text.length} bytes, ${small.length} with brotli`);
}
cpSync(check, join(target, 'check.html'));
cpSync(doctor, join(target, 'doctor.html'));
cpSync(bench, join(lab, 'bench.js'));
// Another project's program is no part of ours: leeway-lab reads it from beside itself.
mkdirSync(join(root, 'build'), { recursive: true });
cpSync(rival, join(root, 'build/rival.js'));
// The page's scripts are embedded compressed and nothing else: players are most of them. With gzip, since browsers take brotli over TLS alone.
const pages = new Set();
for (const name of readdirSync(demo, { recursive: true })) {
  const from = join(demo, name);
  if (!statSync(from).isFile()) continue;
  const packed = name.startsWith('assets/');
  const text = readFileSync(from);
  const to = join('demo', packed ? `${name}.gz` : name);
  mkdirSync(dirname(join(target, to)), { recursive: true });
  writeFileSync(join(target, to), packed ? gzipSync(text, { level: 9 }) : text);
  pages.add(to);
}
// What an earlier build left goes last, so that a go build beside this one finds what it listed.
for (const name of readdirSync(target)) {
  if (!kept.has(name)) rmSync(join(target, name), { recursive: true });
}
for (const name of readdirSync(join(target, 'demo'), { recursive: true })) {
  const path = join('demo', name);
  if (statSync(join(target, path)).isFile() && !pages.has(path)) rmSync(join(target, path));
}
