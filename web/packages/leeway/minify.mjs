// Makes the drop-in's two scripts small. Property names that never leave them are shortened: those that are neither the
// platform's, nor on the wire, nor part of what a page or a player sees.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'vite';

const packages = fileURLToPath(new URL('..', import.meta.url));

/**
 * Modules whose every word stays as it is: what pages, players and the tracker know by name.
 */
const known = [
  'core/src/session/messages.ts',
  'core/src/ports.ts',
  'core/src/events.ts',
  'core/src/playback.ts',
  'core/src/client.ts',
  'hlsjs/src/hls.ts',
  'leeway/src/tag.ts',
  'leeway/src/dropin.ts',
];

/** Names of the platform that TypeScript's libraries do not list, and of counters that `stats()` shows. */
const platform = `saveData candidateType relatedPort selectedCandidatePairId localCandidateId remoteCandidateId nominated
  selected reconnects malformed unknown dropped`;

/** Names of those modules, and of the platform, that nobody outside uses on our objects all the same. */
const inside =
  /^(setTimer|clearTimer|send(Control|Data)|on(Control|Data|Drain|Moved|Named|Visibility|Sleep|Forbidden)|maxMessage|addLink|set(Linking|Off|Keys|ServerTime|Resting)|takeStats|keyId|minIssuedAt|deadlineMs|transferMs|environment|createEngine|hasCredential|hasToken|openSocket|addressSpace|localAccess|pausedChanged|linkFailed|sendStats|serverOffsetMs|released|handles|collect|refused|opened|failed|accepted|stripped|caught|checking|configure|prepare|release|blocked|bypass|observe|upcoming|adaptive|onCollect|setPaused|loads|changed|on_demand|cert_peers|estimate|finish|originUs|attach|detach|begin|switched|certificate|pieces?|bitmap|ready|stalled|digests|played|queued|holds|amend|wake|record|raw|enter|lost|owns|begun|agreed|gone|asked|none|avoid|weight|sources|received|payload|flags|ids|offset|requests|count|line|fromOrigin|object|parts|large|last|remove|timer|rules|background|closed|snapshot|take|cancel|emit|address|reject|delivered|deciding|sharing|allowed|tell|others|sample|accept|dispose|suspend|forbid(den)?|gated|asks|came|watched|since|meter|again|named|ping|lane|queuing|view|members|limited|sending|highest)$/;

function words(file) {
  return readFileSync(file, 'utf8').match(/[A-Za-z_$][\w$]*/g) ?? [];
}

function sources(folder) {
  return readdirSync(folder, { recursive: true })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map((name) => join(folder, name));
}

/** A pattern of the names that may be shortened. */
export function internalNames() {
  const lib = dirname(fileURLToPath(import.meta.resolve('typescript')));
  const kept = new Set(platform.split(/\s+/));
  for (const name of readdirSync(lib)) {
    if (/^lib\..*\.d\.ts$/.test(name)) for (const word of words(join(lib, name))) kept.add(word);
  }
  for (const file of known) for (const word of words(join(packages, file))) kept.add(word);
  const names = new Set();
  for (const folder of ['core/src', 'hlsjs/src']) {
    for (const file of sources(join(packages, folder))) {
      for (const word of words(file)) {
        // Fields of the schedule's input are microseconds; the wire speaks in milliseconds.
        const schedule = /_(us|permille|cap)$/.test(word);
        // Events of hls.js are keys of a table.
        if (/^hls[A-Z]/.test(word)) continue;
        if (schedule || inside.test(word) || (word.length > 2 && !word.includes('_') && !kept.has(word)))
          names.add(word);
      }
    }
  }
  return new RegExp(`^(${[...names].sort().join('|')})$`);
}

/** Nodes of a syntax tree for which `test` holds; what is inside of one for which `skip` holds is left out. */
function nodes(tree, test, skip = () => false) {
  const found = [];
  const visit = (node) => {
    if (!node || typeof node !== 'object') return;
    if (test(node)) found.push(node);
    if (node === tree || !skip(node)) Object.values(node).forEach(visit);
  };
  visit(tree);
  return found;
}

/** Writes `text(node)` in place of each node; from the end, so that what is in front stays where it is. */
function replaced(code, found, text) {
  for (const node of found.toSorted((a, b) => b.start - a.start)) {
    code = code.slice(0, node.start) + text(node) + code.slice(node.end);
  }
  return code;
}

/**
 * The same bundle with what its modules declare as block-scoped variables and arrow functions: esbuild declares modules'
 * variables as `var`, whose values no minifier inlines, and functions need more words. None is used before its place in the
 * bundle: modules come after what they import.
 */
export function modern(code) {
  const [bundle] = nodes(parseSync('leeway.js', code).program, (node) => node.type === 'ArrowFunctionExpression');
  const own = (node) => /^Function/.test(node.type);
  const plain = bundle.body.body.filter(
    (node) =>
      (node.type === 'VariableDeclaration' && node.kind === 'var') ||
      (node.type === 'FunctionDeclaration' &&
        !node.generator &&
        nodes(node.body, (n) => n.type === 'ThisExpression' || n.name === 'arguments', own).length === 0),
  );
  return replaced(code, plain, ({ type, id, async, params, body, start, end }) => {
    if (type === 'VariableDeclaration') return code.slice(start, end).replace('var', 'let');
    const list = params.map((param) => code.slice(param.start, param.end));
    return `let ${id.name} = ${async ? 'async ' : ''}(${list}) => ${code.slice(body.start, body.end)};`;
  });
}

/**
 * The same code with ordinary strings where the minifier wrote templates without a substitution: brotli's dictionary knows
 * words in quotation marks.
 */
export function quoted(code) {
  const plain = nodes(
    parseSync('leeway.js', code).program,
    (node) => node.type === 'TemplateLiteral' && !/["\\\n]|\$\{/.test(code.slice(node.start, node.end)),
  );
  return replaced(code, plain, ({ start, end }) => `"${code.slice(start + 1, end - 1)}"`);
}
