// Rolls the type declarations of each public package up into one file an entry: what the entry exports, with `export`,
// and what those declarations mention, without. Other packages are imported from, not copied.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { generateDtsBundle } from 'dts-bundle-generator';

export const web = fileURLToPath(new URL('..', import.meta.url));

/**
 * The public packages, dependencies first, and the files that their users import: name in dist/ and source; and the parts
 * that those import later.
 */
export const packages = [
  {
    folder: 'core',
    name: '@leeway/core',
    entries: [{ file: 'index', source: 'src/index.ts' }],
    parts: [
      { file: 'compose', source: 'src/compose.ts' },
      { file: 'seldom', source: 'src/seldom.ts' },
      { file: 'disk', source: 'src/disk.ts' },
    ],
  },
  { folder: 'hlsjs', name: '@leeway/hlsjs', entries: [{ file: 'index', source: 'src/index.ts' }] },
  { folder: 'videojs', name: '@leeway/videojs', entries: [{ file: 'index', source: 'src/index.ts' }] },
  { folder: 'shaka', name: '@leeway/shaka', entries: [{ file: 'index', source: 'src/index.ts' }] },
  { folder: 'file', name: '@leeway/file', entries: [{ file: 'index', source: 'src/index.ts' }] },
  { folder: 'panel', name: '@leeway/panel', entries: [{ file: 'index', source: 'src/index.ts' }] },
  { folder: 'dashjs', name: '@leeway/dashjs', entries: [{ file: 'index', source: 'src/index.ts' }] },
  { folder: 'netcheck', name: '@leeway/netcheck', entries: [{ file: 'index', source: 'src/index.ts' }] },
  {
    folder: 'leeway',
    name: 'leeway',
    entries: [
      { file: 'index', source: 'src/index.ts' },
      { file: 'leeway', source: 'src/dropin.ts', globals: true },
    ],
  },
];

/** The declarations by package folder and file: `declarations().core.index`. */
export function declarations() {
  const scratch = mkdtempSync(join(tmpdir(), 'leeway-types-'));
  try {
    return rollUp(scratch);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function rollUp(scratch) {
  const config = join(scratch, 'tsconfig.json');
  const paths = {};
  const done = {};
  for (const { folder, name, entries } of packages) {
    // Without the ambient types of Node: a declaration that needs them would not compile on a page's project.
    const compilerOptions = { types: [], paths, skipLibCheck: true };
    writeFileSync(config, JSON.stringify({ extends: join(web, 'tsconfig.json'), compilerOptions, files: [] }));
    const bundles = generateDtsBundle(
      entries.map(({ source, globals = false }) => ({
        filePath: join(web, 'packages', folder, source),
        libraries: { importedLibraries: Object.keys(paths), allowedTypesLibraries: [] },
        output: { noBanner: true, exportReferencedTypes: false, inlineDeclareGlobals: globals },
      })),
      { preferredConfigPath: config },
    );
    done[folder] = Object.fromEntries(entries.map(({ file }, i) => [file, bundles[i]]));
    // The packages that come after see this one as they would when it is installed: declarations in node_modules.
    const installed = join(scratch, 'node_modules', name);
    mkdirSync(installed, { recursive: true });
    writeFileSync(join(installed, 'index.d.ts'), done[folder].index);
    writeFileSync(join(installed, 'package.json'), JSON.stringify({ name, version: '0.0.0', types: 'index.d.ts' }));
    paths[name] = [join(installed, 'index.d.ts')];
  }
  return done;
}
