import { readFileSync } from 'node:fs';
import { runInNewContext } from 'node:vm';
import { transformSync } from 'esbuild';
import { afterEach, expect, test, vi } from 'vitest';
import { run, type Scope } from './background.ts';

afterEach(() => vi.unstubAllGlobals());

const echo = (scope: Scope<number | undefined, string>) => {
  scope.onmessage = ({ data }) => scope.postMessage(`heard ${data}`);
};

/** Workers that run their text here, as those of a browser do in a thread. */
function workers(fails?: 'policy' | 'late') {
  const made: string[] = [];
  const texts = new Map<string, string>();
  vi.stubGlobal('URL', {
    createObjectURL: (blob: { text: string }) => {
      texts.set('blob:1', blob.text);
      return 'blob:1';
    },
    revokeObjectURL: () => {},
  });
  vi.stubGlobal(
    'Blob',
    class {
      text: string;
      constructor([text]: string[]) {
        this.text = text!;
      }
    },
  );
  vi.stubGlobal(
    'Worker',
    class {
      onmessage: ((e: { data: unknown }) => void) | null = null;
      onerror: ((e: { preventDefault(): void }) => void) | null = null;
      private self: Scope<unknown, unknown> = { onmessage: null, postMessage: (data) => this.onmessage?.({ data }) };
      constructor(url: string) {
        if (fails === 'policy') throw new Error('SecurityError');
        made.push(url);
        if (!fails) runInNewContext(texts.get(url)!, { self: this.self });
        else queueMicrotask(() => this.onerror?.({ preventDefault() {} }));
      }
      postMessage(data: unknown) {
        if (!fails) this.self.onmessage?.({ data });
      }
      terminate() {
        this.self.onmessage = null;
      }
    },
  );
  return made;
}

test.each([undefined, 'policy', 'late'] as const)('a program runs, in a worker or on the page (%s)', async (fails) => {
  const made = workers(fails);
  const heard: string[] = [];
  const running = run(echo, (text: string) => heard.push(text));
  running.tell(1);
  await Promise.resolve();
  running.tell(2);
  expect(heard).toEqual(['heard 1', 'heard 2']);
  expect(made.length).toBe(fails === 'policy' ? 0 : 1);
  running.stop();
  running.tell(3);
  expect(heard).toEqual(['heard 1', 'heard 2']);
});

test.each([
  'load',
  'probing',
])('the program %s needs nothing around it, as it is and minified with names kept', (name) => {
  const source = readFileSync(new URL(`../tcp/${name}.ts`, import.meta.url), 'utf8');
  for (const more of [{}, { minify: true }]) {
    const { code } = transformSync(source, { loader: 'ts', target: 'es2022', format: 'cjs', ...more });
    const exported: Record<string, (scope: object) => void> = {};
    runInNewContext(code, {
      module: {
        set exports(all: typeof exported) {
          Object.assign(exported, all);
        },
      },
    });
    const text = String(Object.values(Object.fromEntries([[name, exported[name]]]))[0]);
    const asked: string[] = [];
    const scope: { onmessage?: (e: { data: unknown }) => void; postMessage(m: unknown): void } = { postMessage() {} };
    class Socket {
      constructor(url: string) {
        asked.push(url);
      }
      close() {}
    }
    class Observer {
      observe() {}
      disconnect() {}
    }
    const around = {
      ...{
        self: scope,
        WebSocket: Socket,
        PerformanceObserver: Observer,
        AbortController,
        performance,
        crypto,
        Uint8Array,
      },
      ...{ setInterval: () => 1, clearInterval: () => {}, setTimeout: () => 1 },
      fetch: async (url: string) => {
        asked.push(url);
        return { status: 200, arrayBuffer: async () => new ArrayBuffer(1) };
      },
    };
    runInNewContext(`(${text})(self)`, around);
    scope.onmessage!({
      data: { direction: 'up', length: 1e6, urls: ['ws://p.test/'], url: 'http://p.test/', every: 250 },
    });
    expect(asked.length).toBe(1);
    scope.onmessage!({ data: undefined });
  }
});
