/** What comes from the origin comes as it does without Leeway: by Shaka's own plug-in, in Shaka's own times. */

import type { Clock } from '@leeway/core';
import type { HeadersReceived, Operation, ProgressUpdated, SchemePlugin, ShakaLike, ShakaRequest } from './shaka.ts';

/** The plug-in that Shaka itself takes for HTTP. */
export function ownPlugin({ net: { HttpFetchPlugin, HttpXHRPlugin } }: ShakaLike): SchemePlugin {
  return HttpFetchPlugin.isSupported() || !HttpXHRPlugin ? HttpFetchPlugin.parse : HttpXHRPlugin.parse;
}

/** An error as Shaka's networking engine knows them: it asks again, as often as its settings say. */
export function failure(
  { util }: ShakaLike,
  code: 'HTTP_ERROR' | 'TIMEOUT' | 'OPERATION_ABORTED',
  ...data: unknown[]
): object {
  const { Severity, Category, Code } = util.Error;
  return new util.Error(Severity.RECOVERABLE, Category.NETWORK, Code[code], ...data);
}

/**
 * One fetch from the origin. Shaka bounds the time to the first bytes, and between two, for plug-ins that tell of their
 * progress alone; a segment from peers has none, so ours does not, and these bounds are kept here.
 */
export function fetchOrigin(
  shaka: ShakaLike,
  clock: Clock,
  uri: string,
  request: ShakaRequest,
  type: number,
  progress: ProgressUpdated,
  headers: HeadersReceived,
  config: unknown,
): Operation {
  const { connectionTimeout, stallTimeout } = request.retryParameters;
  let late = false;
  let timer = 0;
  const within = (ms: number | undefined) => {
    clock.clearTimer(timer);
    if (!ms) return;
    timer = clock.setTimer(() => {
      late = true;
      void operation.abort();
    }, ms);
  };
  const moved: ProgressUpdated = (...how) => {
    within(stallTimeout);
    progress(...how);
  };
  const operation = ownPlugin(shaka)(uri, request, type, moved, headers, config);
  within(connectionTimeout);
  const promise = operation.promise
    .finally(() => within(0))
    .catch((error: unknown) => {
      throw late ? failure(shaka, 'TIMEOUT', uri, type) : error;
    });
  return new shaka.util.AbortableOperation(promise, () => operation.abort());
}
