// Finds the properties that the drop-in's scripts may call otherwise: those that nothing outside of the scripts ever sees.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import data from '@mdn/browser-compat-data' with { type: 'json' };
import ts from 'typescript';
import { programOf, sources } from '../browsers/uses.mjs';
import { web } from '../declarations.mjs';

/** The names that the build takes. */
export const list = join(web, 'packages/leeway/renamed.json');

/** How far what is in an object is followed. */
const deep = 3;

/** Shorter ones are not worth it. */
const shortest = 4;

/** Where objects of others are at home: those of players, and messages as they are on the wire. All names there count as theirs. */
const others = /\/(hlsjs|shaka|dashjs|videojs)\/src\/|\/session\/messages\.ts$/;

/**
 * The names of properties that these files of a program declare, without those that something else may know: the declarations of the DOM and
 * of the language, the public API, a player, a wire format, a string, or code that goes by the names that an object has.
 */
export function namesOf(program, files) {
  const found = new Survey(program, files);
  for (const source of program.getSourceFiles()) if (program.isSourceFileDefaultLibrary(source)) found.foreign(source);
  for (const text of reports()) found.foreign(text);
  for (const of of Object.values(data.api)) for (const name of Object.keys(of)) found.known.add(name);
  for (const file of files) found.walk(program.getSourceFile(file));
  return [...found.own]
    .filter((name) => /^[a-z][a-zA-Z]*$/.test(name) && name.length >= shortest && !found.known.has(name))
    .sort();
}

/** The same of the packages. */
export function renamable() {
  const files = sources();
  return namesOf(programOf(files), files);
}

/** The public API, as TypeScript. */
function reports() {
  const folder = join(web, '../docs/api');
  return readdirSync(folder).map((file) => {
    const blocks = readFileSync(join(folder, file), 'utf8').matchAll(/^```ts\n(.*?)^```$/gms);
    return ts.createSourceFile(
      `${file}.ts`,
      [...blocks].map(([, text]) => text).join('\n'),
      ts.ScriptTarget.ES2022,
      true,
    );
  });
}

class Survey {
  constructor(program, files) {
    this.program = program;
    this.checker = program.getTypeChecker();
    this.files = new Set(files);
    /** Declared by the files. */
    this.own = new Set();
    /** Known to something else. */
    this.known = new Set();
  }

  /** All names in what is not ours count. */
  foreign(node) {
    if (ts.isIdentifier(node) || ts.isStringLiteralLike(node)) this.known.add(node.text);
    ts.forEachChild(node, (child) => this.foreign(child));
  }

  walk(node) {
    if ((ts.isSourceFile(node) && others.test(node.fileName)) || isAmbient(node)) {
      this.foreign(node);
      return;
    }
    // A module that is taken as an object has them as they are.
    if (ts.isSourceFile(node))
      for (const { name } of this.checker.getExportsOfModule(this.checker.getSymbolAtLocation(node)))
        this.known.add(name);
    if (ts.isStringLiteralLike(node)) this.known.add(node.text);
    if (ts.isRegularExpressionLiteral(node)) for (const [word] of node.text.matchAll(/\w+/g)) this.known.add(word);
    if (isDeclaration(node)) this.declared(node);
    if (ts.isPropertyAccessExpression(node)) this.member(node.expression, node.name);
    if (ts.isBindingElement(node) && ts.isObjectBindingPattern(node.parent))
      this.member(node.parent, node.propertyName ?? node.name);
    if (ts.isElementAccessExpression(node)) this.computed(node);
    if (ts.isForInStatement(node)) this.open(node.expression);
    if (ts.isCallExpression(node)) this.called(node);
    if (ts.isAsExpression(node)) this.cast(node);
    // What a value is found to be.
    if (ts.isTypePredicateNode(node) && node.type) this.openType(this.checker.getTypeFromTypeNode(node.type), deep);
    if (ts.isExpression(node)) this.passed(node);
    ts.forEachChild(node, (child) => this.walk(child));
  }

  declared(node) {
    const name = node.name.text;
    this.own.add(name);
    // In an object that is taken for one with any names, or with none that the compiler knows.
    const type = ts.isObjectLiteralExpression(node.parent) && this.checker.getContextualType(node.parent);
    if (type && (isOpen(type) || (type.getStringIndexType() && !type.getProperty(name)))) this.known.add(name);
  }

  /** A member of which the compiler knows nothing. */
  member(of, name) {
    if (!ts.isIdentifier(name)) return;
    const type = this.checker.getApparentType(this.checker.getNonNullableType(this.checker.getTypeAtLocation(of)));
    if (!this.checker.getPropertyOfType(type, name.text)) this.known.add(name.text);
  }

  /** `x[name]`: all that x has is found by its name. */
  computed({ expression, argumentExpression }) {
    const index = this.checker.getTypeAtLocation(argumentExpression);
    if (!(index.flags & ts.TypeFlags.NumberLike)) this.open(expression);
  }

  /** What is handed to something that takes anything. */
  called(node) {
    if (/^Object\.(keys|entries|values|fromEntries)$/.test(node.expression.getText())) this.open(node.arguments[0]);
    const signature = this.checker.getResolvedSignature(node);
    const parameters = signature?.getParameters() ?? [];
    for (const [n, one] of node.arguments.entries()) {
      const parameter = parameters[Math.min(n, parameters.length - 1)];
      if (!parameter) continue;
      const type = this.checker.getTypeOfSymbolAtLocation(parameter, node);
      if (isOpen(type) || (type.getNumberIndexType() && isOpen(type.getNumberIndexType()))) this.open(one, deep);
    }
  }

  /** What a value is taken for, and does not have by its own type. */
  cast({ expression, type }) {
    const before = this.checker.getTypeAtLocation(expression);
    const after = this.checker.getTypeAtLocation(type);
    if (isOpen(before) || this.isForeign(before)) this.openType(after, deep);
    else
      for (const { name } of this.checker.getApparentType(after).getProperties())
        if (!this.checker.getPropertyOfType(this.checker.getApparentType(before), name)) this.known.add(name);
  }

  /** A value of something else, or of which nothing is known, where one of ours is expected. */
  passed(node) {
    const type = this.checker.getTypeAtLocation(node);
    const wanted =
      ts.isVariableDeclaration(node.parent) && node.parent.type
        ? this.checker.getTypeFromTypeNode(node.parent.type)
        : this.checker.getContextualType(node);
    if (wanted && !isOpen(wanted) && (type.flags & ts.TypeFlags.Any || this.isForeign(type)))
      this.openType(wanted, deep);
  }

  isForeign(type) {
    return (type.getSymbol()?.declarations ?? []).some((one) =>
      this.program.isSourceFileDefaultLibrary(one.getSourceFile()),
    );
  }

  /** Each name of an object is known, and so are those of what is in it, so deep. */
  open(expression, depth = 1) {
    this.openType(this.checker.getTypeAtLocation(expression), depth);
  }

  openType(type, depth) {
    if (depth === 0) return;
    for (const one of type.isUnionOrIntersection() ? type.types : [type])
      for (const symbol of this.checker.getApparentType(one).getProperties()) {
        this.known.add(symbol.name);
        if (depth > 1) this.openType(this.checker.getTypeOfSymbol(symbol), depth - 1);
      }
  }
}

/** Whether a type lets anything in. */
const isOpen = ({ flags }) => (flags & (ts.TypeFlags.Any | ts.TypeFlags.Unknown | ts.TypeFlags.NonPrimitive)) !== 0;

const isAmbient = (node) =>
  ts.canHaveModifiers(node) && node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.DeclareKeyword);

function isDeclaration(node) {
  return (
    (ts.isPropertySignature(node) ||
      ts.isMethodSignature(node) ||
      ts.isPropertyDeclaration(node) ||
      ts.isMethodDeclaration(node) ||
      ts.isAccessor(node) ||
      ts.isPropertyAssignment(node) ||
      ts.isShorthandPropertyAssignment(node)) &&
    ts.isIdentifier(node.name)
  );
}
