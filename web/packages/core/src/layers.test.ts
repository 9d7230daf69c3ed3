/** Folders and files import each other in one direction: docs/architecture.md, "Layers of the browser code". */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';

const web = join(import.meta.dirname, '../../..');

/** A folder is one node of the graph. So is a file directly in `src`: those are parts of their own. */
const folderOf = (path: string): string => (/\/src\/[^/]+$/.test(path) ? path : dirname(path));

/** The edges of the graph: for each node those that it imports, types among them. */
export function graph(files: Map<string, string>, nodeOf: (path: string) => string): Map<string, Set<string>> {
  const edges = new Map<string, Set<string>>();
  for (const [path, text] of files) {
    const from = nodeOf(path);
    const to = edges.get(from) ?? new Set();
    edges.set(from, to);
    for (const [, name] of text.matchAll(/(?:from|import\()\s*'(\.{1,2}\/[^']+\.ts)'/g)) {
      const target = nodeOf(join(dirname(path), name!));
      if (target !== from) to.add(target);
    }
  }
  return edges;
}

/** The first cycle that is found, as a path; undefined: there is none. */
export function cycle(edges: Map<string, Set<string>>): string | undefined {
  const done = new Set<string>();
  const visit = (node: string, path: string[]): string | undefined => {
    if (path.includes(node)) return [...path.slice(path.indexOf(node)), node].join(' → ');
    if (done.has(node)) return undefined;
    for (const next of edges.get(node) ?? []) {
      const found = visit(next, [...path, node]);
      if (found) return found;
    }
    done.add(node);
    return undefined;
  };
  for (const node of edges.keys()) {
    const found = visit(node, []);
    if (found) return found;
  }
  return undefined;
}

describe('nothing imports itself by way of others', () => {
  const files = new Map<string, string>();
  for (const root of ['packages', 'apps'])
    for (const entry of readdirSync(join(web, root), { recursive: true, withFileTypes: true })) {
      const path = relative(web, join(entry.parentPath, entry.name));
      if (/^[^/]+\/[^/]+\/src\/.*(?<!\.(test|bench))\.ts$/.test(path))
        files.set(path, readFileSync(join(web, path), 'utf8'));
    }
  test('the files are found', () => expect(files.size).toBeGreaterThan(170));
  test('no folder', () => expect(cycle(graph(files, folderOf))).toBeUndefined());
  test('no file', () => expect(cycle(graph(files, (path) => path))).toBeUndefined());
});

test('a cycle is found', () => {
  const files = new Map([
    ['core/src/a/x.ts', "import { y } from '../b/y.ts';\nimport type { z } from './z.ts';"],
    ['core/src/a/z.ts', "import type {\n  a,\n} from '../../../leeway/src/load.ts';"],
    ['core/src/b/y.ts', "import { c } from '../c.ts';"],
    ['core/src/c.ts', "export const c = () => import('./b/w.ts');"],
    ['core/src/b/w.ts', ''],
  ]);
  expect(cycle(graph(files, folderOf))).toBe('core/src/b → core/src/c.ts → core/src/b');
  files.set('core/src/c.ts', '');
  expect(cycle(graph(files, folderOf))).toBeUndefined();
  files.set('core/src/a/z.ts', "import type { x } from './x.ts';");
  expect(cycle(graph(files, folderOf))).toBeUndefined();
  expect(cycle(graph(files, (path) => path))).toBe('core/src/a/x.ts → core/src/a/z.ts → core/src/a/x.ts');
});
