/** What to say of a check without a result, or with a part of one, and what a person can do next. */
import type { CheckError, Results } from '@leeway/netcheck';

export interface Problem {
  sentence: string;
  next: string;
}

function wait(seconds: number | undefined): string {
  if (seconds === undefined) return 'in a few minutes';
  if (seconds < 90) return `in ${Math.ceil(seconds)} seconds`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 90 ? `in ${minutes} minutes` : `in ${Math.ceil(minutes / 60)} hours`;
}

function refused(status: number | undefined, retryAfter: number | undefined): Problem {
  switch (status) {
    case 401:
      return {
        sentence: 'This server checks the lines of invited viewers only.',
        next: 'Open the page by the link that the site or its support gave you: a token is part of it.',
      };
    case 403:
      return {
        sentence: 'The token of this link is not valid, or no longer.',
        next: 'Ask the site or its support for a new link.',
      };
    case 404:
      return {
        sentence: 'This server does not have this check (404).',
        next: 'If the check is to give way, try it without. Otherwise the address may be wrong: tell its operator.',
      };
    case 429:
      return {
        sentence: 'Your address has had as many checks as it may for now.',
        next: `Others behind the same connection count, too. Try again ${wait(retryAfter)}.`,
      };
    case 503:
      return {
        sentence: 'The server takes no further checks now.',
        next: `It is busy with those of others, or about to restart. Try again ${wait(retryAfter)}.`,
      };
    default:
      return {
        sentence: `The server refuses the check${status === undefined ? '' : ` (${status})`}.`,
        next: 'The address may be wrong. Tell its operator.',
      };
  }
}

/** Why a check has broken off: the line, or the server, which has gone. */
function stopped(known: string, server: string, gone: boolean): Problem {
  if (gone)
    return {
      sentence: `${server} has stopped answering in the middle of the check.${known}`,
      next: 'If other pages still load, the server has gone: try again in a few minutes. If none does, your line has: move closer to the router, or use a cable.',
    };
  return {
    sentence: `The line went silent in the middle of the check.${known}`,
    next: 'Move closer to the router or use a cable, and try again. If it happens again, the line itself breaks off under load: tell your provider.',
  };
}

/** `gone`: the server does not answer after it either. */
export function problemOf(error: CheckError, server: string, gone = false): Problem {
  const known = error.results?.figures.length ? ' What was measured before is below.' : '';
  switch (error.code) {
    case 'refused':
      return refused(error.status, error.retryAfter);
    case 'stopped':
      return stopped(known, server, gone);
    case 'aborted':
      return { sentence: `You stopped the check.${known}`, next: 'Press "Try again" for a whole one.' };
    default:
      return {
        sentence: error.message, // that it does not answer, that no WebSocket opens, or that it is another kind of server
        next: `Are you online? If other pages load, a firewall may block ${server}: try another network, or ask who runs yours to allow it. Otherwise the address may be wrong: tell its operator.`,
      };
  }
}

/** What a check that is complete could not measure, and what to do about it; empty: nothing. */
export function missingOf({ channel, channel_reason: why, figures }: Results): string {
  const what = figures.some(({ name }) => name === 'throughput') ? 'loss' : 'what is free of the line';
  switch (channel) {
    case 'blocked':
      return `UDP to the server is blocked, so ${what} was not measured. A firewall does that, often on purpose: try another network, or ask who runs yours.`;
    case 'broken':
      return `The test of loss broke off${why ? `: ${why}` : ''}. Check again; if it happens each time, tell the server's operator.`;
    default:
      return '';
  }
}
