export interface Script {
  name: string;
  code: string;
  /** The modules that it was made of, relative to this folder. */
  inputs: string[];
  /** Those of which something is left in it. */
  holds: string[];
}
export type Kind = 'script' | keyof typeof import('./parts.json');
export const budgets: Record<Kind, number>;
export function scripts(): Promise<Record<Kind, Script>>;
export function sizes(script: Script): { bytes: number; brotli: number };
