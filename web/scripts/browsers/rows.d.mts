/** A use of browsers: the APIs that it takes, and what happens without them; left out: they are needed. */
export interface Row {
  use: string;
  apis: string[];
  without?: string;
  /** Without them no peer delivers. */
  off?: true;
}

export const rows: Row[];
