/**
 * Readers of what JSON.parse gives, for messages of others: each takes a value of one form, and throws for any other.
 * What an object has beyond its shape is dropped.
 */

import { fromBase64url } from './base64.ts';

export type Reader<T> = (value: unknown) => T;

export function fail(): never {
  throw new TypeError();
}

/** A reader of what passes a test. */
export const that =
  <T>(test: (value: never) => unknown): Reader<T> =>
  (value) =>
    test(value as never) ? (value as T) : fail();

/** Limits are in bytes of UTF-8. */
export const size = (value: string) => new TextEncoder().encode(value).length;

export const text = (max: number, min = 0): Reader<string> =>
  that((value: unknown) => typeof value === 'string' && value.length >= min && size(value) <= max);

export const integer = (min: number, max: number): Reader<number> =>
  that((value: number) => Number.isSafeInteger(value) && value >= min && value <= max);

export const flag: Reader<boolean> = that((value: unknown) => typeof value === 'boolean');

export const one = <T extends string>(...values: readonly T[]): Reader<T> => that((value: T) => values.includes(value));

export const bytes = (length: number): Reader<string> =>
  that((value: unknown) => typeof value === 'string' && fromBase64url(value)?.length === length);

export const list =
  <T>(item: Reader<T>, max: number): Reader<T[]> =>
  (value) =>
    Array.isArray(value) && value.length <= max ? value.map(item) : fail();

/** A field that may be missing takes the fallback; null is a wrong type. */
export const or =
  <T, F = undefined>(reader: Reader<T>, fallback?: F): Reader<T | F> =>
  (value) =>
    value === undefined ? (fallback as F) : reader(value);

type Shape<T> = { [K in keyof T]-?: Reader<T[K]> };

export const object =
  <T>(shape: Shape<T>): Reader<T> =>
  (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) fail();
    const out: Partial<T> = {};
    for (const key in shape) {
      const field = shape[key]((value as T)[key]);
      if (field !== undefined) out[key] = field;
    }
    return out as T;
  };
