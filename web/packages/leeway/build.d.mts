export const budget: number;
export function dropin(): Promise<string>;
export function measure(): Promise<{ bytes: number; brotli: number }>;
