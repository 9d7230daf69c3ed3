// Finds what the packages use of a browser, by the compiler's own symbols: what resolves into the declarations of the DOM or of the language.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { packages, web } from '../declarations.mjs';

/** The sources of the public packages, without tests and without what only tests have. */
export function sources() {
  const files = [];
  for (const { folder } of packages) {
    const root = join(web, 'packages', folder, 'src');
    for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      if (/\.ts$/.test(path) && !/\.(test|bench|d)\.ts$|\/testing(\/|\.ts$)|\/simulation\//.test(path))
        files.push(path);
    }
  }
  return files;
}

const options = {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  lib: ['lib.es2023.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
  // Without Node's: it declares much of what browsers have.
  types: [],
  strict: true,
  allowImportingTsExtensions: true,
  resolveJsonModule: true,
  skipLibCheck: true,
  noEmit: true,
};

/** A program of these files; `texts` stand for files that are not on the disk. */
export function programOf(files, texts = new Map()) {
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists, readFile } = host;
  host.getSourceFile = (name, ...rest) =>
    texts.has(name) ? ts.createSourceFile(name, texts.get(name), options.target) : getSourceFile(name, ...rest);
  host.fileExists = (name) => texts.has(name) || fileExists(name);
  host.readFile = (name) => texts.get(name) ?? readFile(name);
  return ts.createProgram(files, options, host);
}

/**
 * What is used, by name, each with the files that use it. `dom` and `language` hold the names that a use may have in the data, the
 * likeliest first (`Response.arrayBuffer`, `Body.arrayBuffer`); `syntax` holds what has no name.
 */
export function usesOf(program, files) {
  const uses = { dom: new Map(), language: new Map(), syntax: new Map() };
  const walker = new Walker(program, uses);
  for (const file of files) walker.walk(program.getSourceFile(file));
  return uses;
}

class Walker {
  constructor(program, uses) {
    this.program = program;
    this.checker = program.getTypeChecker();
    this.uses = uses;
    /** Interfaces that are a browser's and not the language's. */
    this.interfaces = new Set();
  }

  walk(source) {
    this.file = source.fileName;
    this.visit(source);
  }

  note(kind, names) {
    const key = names.join(' ');
    const use = this.uses[kind].get(key) ?? { names, files: new Set() };
    use.files.add(this.file);
    this.uses[kind].set(key, use);
  }

  visit(node) {
    this.syntax(node);
    // A type is gone when the script runs.
    if (ts.isTypeNode(node) && !ts.isExpressionWithTypeArguments(node)) return;
    if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node) || ts.isImportDeclaration(node)) return;
    if (ts.isHeritageClause(node) && node.token === ts.SyntaxKind.ImplementsKeyword) return;
    if (node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.DeclareKeyword)) return;
    if (ts.isPropertyAccessExpression(node)) {
      this.member(node.expression, node.name.text);
      this.visit(node.expression);
      return;
    }
    if (ts.isElementAccessExpression(node) && ts.isStringLiteralLike(node.argumentExpression))
      this.member(node.expression, node.argumentExpression.text);
    if (ts.isBindingElement(node) && ts.isObjectBindingPattern(node.parent)) {
      const name = node.propertyName ?? node.name;
      if (ts.isIdentifier(name)) this.memberOf(this.checker.getTypeAtLocation(node.parent), name.text);
    }
    if (ts.isNewExpression(node) && ts.isIdentifier(node.expression)) {
      this.constructed(node.expression);
      for (const argument of node.arguments ?? []) this.visit(argument);
      return;
    }
    if (ts.isAsExpression(node)) this.cast(node);
    if (ts.isCallExpression(node)) this.listener(node);
    if (ts.isIdentifier(node)) this.global(node);
    ts.forEachChild(node, (child) => this.visit(child));
  }

  /** A name that stands alone. */
  global(node) {
    const { parent } = node;
    const shorthand = ts.isShorthandPropertyAssignment(parent) && parent.name === node;
    if (!shorthand && parent.name === node) return;
    // Of what it takes apart.
    if (ts.isBindingElement(parent) && parent.propertyName === node) return;
    const symbol = shorthand
      ? this.checker.getShorthandAssignmentValueSymbol(parent)
      : this.checker.getSymbolAtLocation(node);
    const kind = this.kindOf(symbol);
    if (kind) this.note(kind, [node.text]);
  }

  /** A constructor may be newer than its interface. */
  constructed(node) {
    const kind = this.kindOf(this.checker.getSymbolAtLocation(node));
    if (kind) this.note(kind, [`${node.text}.${node.text}`, node.text]);
  }

  member(expression, name) {
    this.memberOf(this.checker.getTypeAtLocation(expression), name);
  }

  memberOf(type, name) {
    const apparent = this.checker.getApparentType(this.checker.getNonNullableType(type));
    for (const one of apparent.isUnion() ? apparent.types : [apparent]) this.memberOfOne(one, name);
  }

  memberOfOne(type, name) {
    const symbol = this.checker.getPropertyOfType(type, name);
    const kind = this.kindOf(symbol);
    const owners = this.owners(type);
    // `globalThis.crypto` and `window.crypto` are `crypto`.
    if (kind && (owners.includes('Window') || !ownerOf(symbol)))
      return this.note(kind, [...new Set(['Window', ...owners].map((owner) => `${owner}.${name}`)), name]);
    if (kind)
      return this.note(
        kind,
        [...new Set([...owners, ownerOf(symbol)])].map((owner) => `${owner}.${name}`),
      );
    // Declared by our own interface, of something that a browser has: the compiler does not know it yet.
    if (this.ofBrowser(owners) && declaredByInterface(symbol)) this.noteOwn(symbol, owners);
  }

  /** By the name of our interface, too: it may be called as the browser's own. */
  noteOwn(symbol, owners) {
    const { parent } = symbol.declarations[0];
    const all = ts.isInterfaceDeclaration(parent) ? [parent.name.text, ...owners] : owners;
    this.note(
      'dom',
      [...new Set(all)].map((owner) => `${owner}.${symbol.name}`),
    );
  }

  /** The interfaces of a library that a type is or extends, from the nearest to the furthest. */
  owners(type) {
    const found = [];
    const add = (one) => {
      const symbol = one.getSymbol();
      const kind = this.kindOf(symbol);
      if (kind && symbol.name !== '__type' && !found.includes(symbol.name)) found.push(symbol.name);
      if (kind === 'dom') this.interfaces.add(symbol.name);
      if (one.isIntersection()) for (const part of one.types) add(part);
      const target = one.target ?? one;
      if (target.isClassOrInterface?.()) for (const base of this.checker.getBaseTypes(target)) add(base);
    };
    add(type);
    return found;
  }

  ofBrowser(owners) {
    return owners.some((owner) => this.interfaces.has(owner));
  }

  /** Of whose declarations a symbol is; undefined: of none of the browser's. */
  kindOf(symbol) {
    const files = symbol?.declarations?.map((declaration) => declaration.getSourceFile()) ?? [];
    const libraries = files.filter((file) => this.program.isSourceFileDefaultLibrary(file));
    if (libraries.length === 0) return undefined;
    return libraries.some(({ fileName }) => /\/lib\.(?!dom)[^/]*$/.test(fileName)) ? 'language' : 'dom';
  }

  /** `navigator as { deviceMemory?: number }`: what the compiler's declarations lack. */
  cast(node) {
    const owners = this.owners(this.checker.getTypeAtLocation(node.expression));
    if (!this.ofBrowser(owners)) return;
    for (const symbol of this.checker.getTypeAtLocation(node.type).getProperties())
      if (declaredByInterface(symbol) && !this.kindOf(symbol)) this.noteOwn(symbol, owners);
  }

  /** `target.addEventListener('freeze', …)`. */
  listener({ expression, arguments: [event] }) {
    if (!ts.isPropertyAccessExpression(expression) || expression.name.text !== 'addEventListener') return;
    const owners = this.owners(this.checker.getTypeAtLocation(expression.expression));
    if (!event || !ts.isStringLiteral(event) || owners.length === 0) return;
    this.note(
      'dom',
      // The data has events that bubble where they begin.
      [...owners, 'Element', 'Window'].map((owner) => `${owner}.${event.text}_event`),
    );
  }

  syntax(node) {
    if (ts.isRegularExpressionLiteral(node)) {
      const [, pattern, flags] = /^\/(.*)\/(\w*)$/s.exec(node.text);
      if (/\(\?<[=!]/.test(pattern)) this.note('syntax', ['regular_expressions.lookbehind_assertion']);
      if (/\(\?[a-z-]+:/.test(pattern)) this.note('syntax', ['regular_expressions.modifier']);
      if (flags.includes('v')) this.note('syntax', ['builtins.RegExp.unicodeSets']);
      if (flags.includes('d')) this.note('syntax', ['builtins.RegExp.hasIndices']);
    }
    if (ts.isClassStaticBlockDeclaration(node)) this.note('syntax', ['classes.static.initialization_blocks']);
    if (ts.isPropertyDeclaration(node)) this.note('syntax', ['classes.public_class_fields']);
    if (ts.isPrivateIdentifier(node)) this.note('syntax', ['classes.private_class_methods']);
    if (ts.isBinaryExpression(node)) this.operator(node);
  }

  operator({ left, right, operatorToken: { kind } }) {
    const { InKeyword, QuestionQuestionEqualsToken, BarBarEqualsToken, AmpersandAmpersandEqualsToken } = ts.SyntaxKind;
    if (kind === QuestionQuestionEqualsToken) this.note('syntax', ['operators.nullish_coalescing_assignment']);
    if (kind === BarBarEqualsToken) this.note('syntax', ['operators.logical_or_assignment']);
    if (kind === AmpersandAmpersandEqualsToken) this.note('syntax', ['operators.logical_and_assignment']);
    if (kind === InKeyword && ts.isPrivateIdentifier(left)) this.note('syntax', ['classes.private_class_fields_in']);
    if (kind === InKeyword && ts.isStringLiteral(left)) this.member(right, left.text);
  }
}

/** The interface that declares a member, or the variable that has it; undefined: a global has no owner. */
function ownerOf(symbol) {
  const { parent } = symbol.declarations[0];
  if (ts.isInterfaceDeclaration(parent)) return parent.name.text;
  if (ts.isTypeLiteralNode(parent) && ts.isVariableDeclaration(parent.parent)) return `${parent.parent.name.text}#`;
  return ts.isModuleBlock(parent) ? parent.parent.name.text : undefined;
}

function declaredByInterface(symbol) {
  const parent = symbol?.declarations?.[0]?.parent;
  return parent !== undefined && (ts.isInterfaceDeclaration(parent) || ts.isTypeLiteralNode(parent));
}
