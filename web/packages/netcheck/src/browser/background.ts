/** Programs beside the page: in a worker, so that neither holds up the other. */

/** What a program sees as its surroundings: those of a worker, or what stands for them on the page. */
export interface Scope<In, Out> {
  onmessage: ((event: { data: In }) => void) | null;
  postMessage(message: Out): void;
}

/**
 * A function that uses nothing but its argument and what every browser has: its text becomes a worker's program. The message
 * undefined tells it to end what it has begun.
 */
export type Program<In, Out> = (scope: Scope<In | undefined, Out>) => void;

export interface Running<In> {
  tell(message: In | undefined): void;
  /** Nothing is heard of it any more. */
  stop(): void;
}

/** Runs a program in a worker, or on the page where a policy forbids workers. */
export function run<In, Out>(program: Program<In, Out>, heard: (message: Out) => void): Running<In> {
  let stopped = false;
  let spoke = false; // it runs
  const told: (In | undefined)[] = [];
  let here: Scope<In | undefined, Out> | undefined;
  const hear = (message: Out) => {
    if (!stopped) heard(message);
  };
  const onPage = () => {
    here = { onmessage: null, postMessage: hear };
    program(here);
    for (const data of told) here.onmessage?.({ data });
  };
  let worker: Worker | undefined;
  try {
    worker = start(`(${program})(self)`);
    worker.onmessage = ({ data }) => {
      spoke = true;
      hear(data);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      if (spoke) return;
      worker?.terminate();
      worker = undefined;
      if (!stopped && !here) onPage();
    };
  } catch {
    onPage();
  }
  return {
    tell(message) {
      told.push(message);
      if (here) here.onmessage?.({ data: message });
      else worker?.postMessage(message);
    },
    stop() {
      stopped = true;
      worker?.terminate();
      here?.onmessage?.({ data: undefined });
    },
  };
}

function start(text: string): Worker {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/javascript' }));
  try {
    return new Worker(url);
  } finally {
    URL.revokeObjectURL(url); // the fetch has begun
  }
}
