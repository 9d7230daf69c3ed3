import { appendFileSync } from 'node:fs';
import { figuresFile } from './paths.ts';

/** Prints a case's figures as one JSON line and adds them to build/e2e.json. */
export function figures(test: string, values: Record<string, unknown>): void {
  const line = JSON.stringify({ test, ...values });
  process.stdout.write(`${line}\n`);
  appendFileSync(figuresFile, `${line}\n`);
}

export function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

export function round(value: number, digits = 3): number {
  return Number(value.toFixed(digits));
}
