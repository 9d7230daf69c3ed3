import { expect, test } from 'vitest';
import { type MediaPlaylist, readPlaylist, vod } from '../fixtures/playlists.ts';
import { edgeAt, liveWindow, lowLatencyWindow, partName, partOf, wholeAt } from './live.ts';

const playlist: MediaPlaylist = {
  map: '#EXT-X-MAP:URI="init.mp4"',
  entries: Array.from({ length: 10 }, (_, i) => ({ uri: `seg-${i}.m4s`, seconds: 2, tags: [] })),
};
const options = { window: 3, head: 8 };
const files = (text: string) => text.split('\n').filter((line) => line.startsWith('seg-'));

test('the window slides by a segment when one is whole', () => {
  expect(wholeAt(playlist, 0, options)).toBe(4);
  expect(files(liveWindow(playlist, 0, options))).toEqual(['seg-1.m4s', 'seg-2.m4s', 'seg-3.m4s']);
  expect(files(liveWindow(playlist, 1.9, options))).toEqual(['seg-1.m4s', 'seg-2.m4s', 'seg-3.m4s']);
  const later = liveWindow(playlist, 2, options);
  expect(files(later)).toEqual(['seg-2.m4s', 'seg-3.m4s', 'seg-4.m4s']);
  expect(later).toContain('#EXT-X-MEDIA-SEQUENCE:2\n');
  expect(later).not.toContain('ENDLIST');
});

test('a presentation ends with its fixture', () => {
  const text = liveWindow(playlist, 100, options);
  expect(files(text)).toEqual(['seg-7.m4s', 'seg-8.m4s', 'seg-9.m4s']);
  expect(text).toContain('#EXT-X-ENDLIST');
});

test('parts of the newest segments are named, and the next is hinted at', () => {
  expect(edgeAt(playlist, 0, options)).toEqual({ segment: 3, part: 3 });
  expect(edgeAt(playlist, 0.5, options)).toEqual({ segment: 4, part: 0 });
  expect(edgeAt(playlist, 1.9, options)).toEqual({ segment: 4, part: 2 });
  const text = lowLatencyWindow(playlist, 1, options);
  expect(files(text)).toEqual(['seg-1.m4s', 'seg-2.m4s', 'seg-3.m4s']);
  expect(text).toContain('#EXT-X-PART:DURATION=0.5,URI="seg-4.1.m4s"\n');
  expect(text).toContain('#EXT-X-PRELOAD-HINT:TYPE=PART,URI="seg-4.2.m4s"');
  expect(text).not.toContain('seg-4.m4s');
});

test('a part ends with the data of a movie fragment', () => {
  const box = (type: string, size: number) => {
    const bytes = Buffer.alloc(size);
    bytes.writeUInt32BE(size);
    bytes.write(type, 4, 'latin1');
    return bytes;
  };
  const first = [box('styp', 12), box('moof', 20), box('mdat', 30)];
  const second = [box('moof', 24), box('mdat', 10)];
  const segment = Buffer.concat([...first, ...second]);
  expect(partOf(segment, 0)).toEqual(Buffer.concat(first));
  expect(partOf(segment, 1)).toEqual(Buffer.concat(second));
  expect(partOf(segment, 2)).toHaveLength(0);
  expect(partOf(Buffer.from([0, 0, 0, 0, 0, 0, 0, 0]), 0)).toHaveLength(0);
  expect(partName('seg-007.m4s', 2)).toBe('seg-007.2.m4s');
});

test('a playlist is read as it is written, without times of day', () => {
  const text = vod({ entries: [{ uri: 'a.mp4', seconds: 2, tags: ['#EXT-X-BYTERANGE:5@7'] }], map: playlist.map });
  const dated = text.replace('#EXTINF', '#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00Z\n#EXTINF');
  expect(vod(readPlaylist(dated))).toBe(text);
});
