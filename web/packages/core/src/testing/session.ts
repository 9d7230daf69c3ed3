/** The owner of a session, as a test watches it. */

import { vi } from 'vitest';
import type { SessionHandlers } from '../session/session.ts';

export const sessionHandlers = () =>
  ({
    welcome: vi.fn(),
    introduce: vi.fn(),
    signal: vi.fn(),
    keys: vi.fn(),
    ice: vi.fn(),
    revoke: vi.fn(),
    policy: vi.fn(),
    error: vi.fn(),
    lost: vi.fn(),
    refused: vi.fn(),
    forbidden: vi.fn(),
  }) satisfies SessionHandlers;
