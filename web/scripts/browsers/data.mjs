// What is known of browsers, by @mdn/browser-compat-data: since which version each has what is used.
import { createRequire } from 'node:module';

const bcd = createRequire(import.meta.url)('@mdn/browser-compat-data');

export const version = bcd.__meta.version;

/** The browsers of the table. Other Chromiums, Edge and Opera among them, have the numbers of Chromium. */
export const browsers = {
  chrome: 'Chromium',
  chrome_android: 'Chromium, Android',
  firefox: 'Firefox',
  safari: 'Safari',
  safari_ios: 'Safari, iOS',
};

const never = Number.POSITIVE_INFINITY;

/** What an interface of the compiler's is called in the data. */
const otherNames = {
  Console: 'console',
  CallableFunction: 'Function',
  NewableFunction: 'Function',
  PromiseLike: 'Promise',
  IteratorObject: 'Iterator',
  RegExpMatchArray: 'Array',
  RegExpExecArray: 'Array',
  BigInt64Array: 'TypedArray',
  BigUint64Array: 'TypedArray',
};

const languageName = (owner) =>
  otherNames[owner] ??
  (/^(Uint|Int|Float)\d+(Clamped)?Array(Constructor)?$/.test(owner)
    ? 'TypedArray'
    : owner.replace(/Constructor$/, '').replace(/^(Readonly|Concat)(?=[A-Z])/, ''));

const entryOf = (tree, ...keys) => {
  let at = tree;
  for (const key of keys) at = Object.hasOwn(at ?? {}, key) ? at[key] : undefined;
  return at?.__compat;
};

/** A member of an interface: by its name, as an event by its handler's, or of the interface itself. */
function memberEntry(tree, owner, member) {
  const of = owner.replace('#', '');
  const event = /^on(\w+)$/.exec(member)?.[1];
  const names = owner.endsWith('#') ? [`${member}_static`, member] : [member, `${member}_static`];
  if (member === 'prototype') return entryOf(tree, of);
  for (const name of event ? [...names, `${event}_event`] : names) {
    const entry = entryOf(tree, of, name);
    if (entry) return entry;
  }
  // A constant.
  return /#$/.test(owner) && /^[A-Z_]+$/.test(member) ? entryOf(tree, of) : undefined;
}

/** The entry of the first of the names that the data knows. */
export function lookUp(kind, names) {
  for (const name of names) {
    const [owner, member] = name.split('.');
    const entry =
      kind === 'syntax'
        ? entryOf(bcd.javascript, ...name.split('.'))
        : member === undefined
          ? (entryOf(bcd.api, owner) ??
            entryOf(bcd.api, 'Window', owner) ??
            entryOf(bcd.javascript.builtins, languageName(owner)))
          : (memberEntry(bcd.api, otherNames[owner] ?? owner, member) ??
            (owner === 'CSSStyleDeclaration' ? entryOf(bcd.css.properties, member) : undefined) ??
            memberEntry(bcd.javascript.builtins, languageName(owner), member));
    if (entry) return { name: name.replace('#', ''), since: sinceOf(entry) };
  }
  return undefined;
}

/** Since which version each browser has it as it is, without a flag or a name of its own. */
function sinceOf({ support }) {
  return Object.fromEntries(
    Object.keys(browsers).map((browser) => [browser, sinceIn([support[browser] ?? []].flat())]),
  );
}

function sinceIn(statements) {
  const plain = statements.filter(
    // A version in part ends, in the data, where all of it begins.
    ({ flags, prefix, alternative_name, version_removed, partial_implementation: part }) =>
      !flags && !prefix && !alternative_name && (!version_removed || part),
  );
  const versions = plain
    .map(({ version_added }) => version_added)
    .filter((v) => typeof v === 'string' && v !== 'preview');
  return versions.map((v) => v.replace('≤', '')).sort(byVersion)[0] ?? null;
}

const numbers = (v) => (v === null ? [never] : v.split('.').map(Number));

/** Orders versions; null is a browser that does not have it. */
export function byVersion(a, b) {
  const [x, y] = [numbers(a), numbers(b)];
  for (let i = 0; i < Math.max(x.length, y.length); i++) {
    const [l, r] = [x[i] ?? 0, y[i] ?? 0];
    if (l !== r) return l < r ? -1 : 1;
  }
  return 0;
}

/** For each browser the newest of several; null where it lacks one. */
export const newest = (all) =>
  Object.fromEntries(
    Object.keys(browsers).map((browser) => [
      browser,
      all
        .map((since) => since[browser])
        .sort(byVersion)
        .at(-1),
    ]),
  );
