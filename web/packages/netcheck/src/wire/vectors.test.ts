import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Control, decodeControl, encodeControl } from './control.ts';
import { decodeMessage, type Echo, encodeMessage, type Probe } from './probe.ts';
import { leastLate, MalformedError, mostLate, patience, silence, thinTime } from './quality.ts';

interface Fields {
  type: 'probe' | 'echo';
  stream: number;
  sequence: number;
  sent_us: number;
  received_us: number;
  echoed_us: number;
}
interface Vectors {
  messages: { name: string; hex: string; zeros?: number; size: number; message: Fields; decode_only?: boolean }[];
  malformed: { name: string; hex: string; zeros?: number; reason: string }[];
  controls: { name: string; text: string; spaces?: number; message: Control; decode_only?: boolean }[];
  malformed_controls: { name: string; text: string; spaces?: number; reason: string; field?: string }[];
  times: Record<string, number>;
}
const v = JSON.parse(
  readFileSync(new URL('../../../../../spec/vectors/quality.json', import.meta.url), 'utf8'),
) as Vectors;

const unhex = (hex: string, zeros = 0): ArrayBuffer =>
  new Uint8Array([...Buffer.from(hex, 'hex'), ...Array(zeros).fill(0)]).buffer;

function message({ type, stream, sequence, sent_us, received_us, echoed_us }: Fields): Probe | Echo {
  const head = { stream, sequence, sent: sent_us };
  return type === 'probe' ? { type, ...head } : { type, ...head, received: received_us, echoed: echoed_us };
}

function thrown(f: () => unknown): MalformedError {
  try {
    f();
  } catch (error) {
    expect(error).toBeInstanceOf(MalformedError);
    return error as MalformedError;
  }
  throw new Error('nothing was thrown');
}

test.each(v.messages)('message: $name', (c) => {
  const raw = unhex(c.hex, c.zeros);
  expect(decodeMessage(raw)).toEqual(message(c.message));
  if (!c.decode_only) expect(encodeMessage(message(c.message), c.size).buffer).toEqual(raw);
});

test.each(v.malformed)('malformed message: $name', (c) => {
  expect(thrown(() => decodeMessage(unhex(c.hex, c.zeros))).reason).toBe(c.reason);
});

test.each(v.controls)('control: $name', (c) => {
  const text = c.text + ' '.repeat(c.spaces ?? 0);
  expect(decodeControl(text)).toEqual(c.message);
  if (!c.decode_only) expect(encodeControl(decodeControl(text))).toBe(text);
});

test.each(v.malformed_controls)('malformed control: $name', (c) => {
  const { reason, field } = thrown(() => decodeControl(c.text + ' '.repeat(c.spaces ?? 0)));
  expect({ reason, field }).toEqual({ reason: c.reason, field: c.field });
});

test('times are those of the specification', () => {
  const times = { least_late: leastLate, most_late: mostLate, thin: thinTime, patience, silence };
  expect(v.times).toMatchObject(times);
});

test('whatever comes is a message or malformed', () => {
  const one = (f: () => unknown) => {
    try {
      return f();
    } catch (error) {
      expect(error).toBeInstanceOf(MalformedError);
      return undefined;
    }
  };
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 1200 }), fc.constantFrom(0, 1, 2), (bytes, type) => {
      const all = new Uint8Array([type, 0, ...bytes]);
      const got = one(() => decodeMessage(all.buffer)) as Probe | Echo | undefined;
      if (got) expect(decodeMessage(encodeMessage(got, 0).buffer)).toEqual(got);
    }),
  );
  const texts = v.controls.map(({ text }) => text);
  fc.assert(
    fc.property(
      fc.oneof(fc.json(), fc.constantFrom(...texts)),
      fc.nat(200),
      fc.string({ maxLength: 3 }),
      (text, at, put) => {
        const got = one(() => decodeControl(text.slice(0, at) + put + text.slice(at))) as Control | undefined;
        if (got) expect(decodeControl(encodeControl(got))).toEqual(got);
      },
    ),
  );
});
