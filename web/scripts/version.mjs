// One version for the libraries and the binary. node scripts/version.mjs tells whether every place says what
// web/package.json says; with a version as its argument it writes that one everywhere.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');
const number = String.raw`\d+\.\d+\.\d+(?:-[\w.]+)?`;

const own = `"version": "(${number})"`;
const dependency = `"(?:leeway|@leeway/\\w+)": "(${number})"`;
/** A manifest, and what it says of the workspace's packages that it depends on. */
const manifest = (path) => {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(root, path), 'utf8'));
  const ours = Object.keys({ ...dependencies, ...devDependencies }).some((name) =>
    /^(?:leeway|@leeway\/\w+)$/.test(name),
  );
  return [[path, own], ...(ours ? [[path, dependency]] : [])];
};
const places = [
  ['web/package.json', own],
  ...['packages', 'apps'].flatMap((folder) =>
    readdirSync(join(root, 'web', folder)).flatMap((name) => manifest(`web/${folder}/${name}/package.json`)),
  ),
  ['web/package-lock.json', `"leeway-workspace",\\s+${own}`],
  ['web/package-lock.json', `"(?:packages|apps)/\\w+": {\\s+(?:"name": "[^"]+",\\s+)?${own}`],
  ['web/package-lock.json', dependency],
  ['web/packages/core/src/index.ts', `version: string = '(${number})'`],
  ['web/packages/leeway/src/dropin.test.ts', `leeway-js/(${number})'`],
  ['internal/app/app.go', `Version = "(${number})"`],
];

const [given] = process.argv.slice(2);
if (given && !new RegExp(`^${number}$`).test(given)) throw new Error(`${given} is no version such as 1.2.3`);
const wanted = given ?? JSON.parse(readFileSync(join(root, 'web/package.json'), 'utf8')).version;

const problem = (file, sentence) => {
  console.error(`${file}: ${sentence}`);
  process.exitCode = 1;
};

for (const [file, pattern] of places) {
  const path = join(root, file);
  const text = readFileSync(path, 'utf8');
  let found = 0;
  const changed = text.replaceAll(new RegExp(pattern, 'g'), (whole, version) => {
    found++;
    if (version !== wanted && !given) {
      problem(file, `says ${version}, web/package.json ${wanted}; "node web/scripts/version.mjs ${wanted}" mends it`);
    }
    return whole.replace(version, wanted);
  });
  if (found === 0) problem(file, `has no version where web/scripts/version.mjs looks for ${pattern}`);
  if (given && changed !== text) writeFileSync(path, changed);
}
