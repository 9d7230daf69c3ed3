/** Why a check has no result. */
import type { Results } from './results.ts';

/**
 * unreachable: the server does not answer. refused: it answers with a status that says why. stopped: it, or the line to it,
 * went silent while a test ran. aborted: the page's signal.
 */
export type CheckErrorCode = 'unreachable' | 'refused' | 'stopped' | 'aborted';

/** Statuses of a refusal: no token, a wrong token, too many tests or bytes of this address, too many tests in all. */
export type RefusalStatus = 401 | 403 | 429 | 503;

/** What an error knows besides its code. */
export interface CheckErrorDetails {
  /** HTTP status of a refusal; of another server it may be any. */
  status?: RefusalStatus | (number & {});
  /** Seconds after which another try may succeed, where the server says so. */
  retryAfter?: number;
  /** What had been measured by then. */
  results?: Results;
  cause?: unknown;
}

/** What `NetworkCheck.run` rejects with. */
export class CheckError extends Error {
  override readonly name = 'CheckError';
  readonly code: CheckErrorCode;
  readonly status: number | undefined;
  readonly retryAfter: number | undefined;
  readonly results: Results | undefined;

  constructor(code: CheckErrorCode, message: string, details: CheckErrorDetails = {}) {
    super(message, { cause: details.cause });
    this.code = code;
    this.status = details.status;
    this.retryAfter = details.retryAfter;
    this.results = details.results;
  }

  /** The same error with what had been measured by then. */
  with(results: Results): CheckError {
    const { code, message, status, retryAfter, cause } = this;
    return new CheckError(code, message, {
      results,
      cause,
      ...(status !== undefined && { status }),
      ...(retryAfter !== undefined && { retryAfter }),
    });
  }
}

/** A page's signal has ended the check. */
export const aborted = (signal: AbortSignal): CheckError =>
  new CheckError('aborted', 'The check was ended before it was complete.', { cause: signal.reason });
