/** A pattern of the names that may be shortened. */
export function internalNames(): RegExp;
/** The same bundle with block-scoped variables and arrow functions. */
export function modern(code: string): string;
/** The same code with ordinary strings in place of templates without a substitution. */
export function quoted(code: string): string;
