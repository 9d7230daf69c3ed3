/** The process that opened this page (internal/lab/bench/demopage/orders.go). */
export interface Process<Word, Order> {
  /** Says something, after what was said before. */
  say(word: Word): void;
  /** Hears what the process says, in order. */
  hear(handle: (order: Order) => void): void;
}

export function openedBy<Word, Order>(): Process<Word, Order> {
  let last: Promise<unknown> = Promise.resolve();
  return {
    say(word) {
      last = last.then(() => fetch('/said', { method: 'POST', body: JSON.stringify(word) })).catch(() => {});
    },
    hear(handle) {
      new EventSource('/orders').onmessage = (event) => handle(JSON.parse(event.data));
    },
  };
}
