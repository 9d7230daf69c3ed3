import { describe, expect, it } from 'vitest';
import { judgeFailure, judgeManifest, readManifestUrl, sharedFrom } from './manifest';

const page = 'http://127.0.0.1:8080/?viewer=2';

describe('a manifest of one’s own', () => {
  it.each([
    ['  https://a.example/f/master.m3u8?t=1#x ', 'https://a.example/f/master.m3u8?t=1'],
    ['/media/bbb/master.m3u8', 'http://127.0.0.1:8080/media/bbb/master.m3u8'],
  ])('takes %s', (text, url) => {
    expect(readManifestUrl(text, page, 'hlsjs')).toEqual({ url });
  });

  it.each([
    ['', page, /^Write the address/],
    ['http://[', page, /no address/],
    ['javascript:alert(1)', page, /begins with https/],
    ['https://me:secret@a.example/m.m3u8', page, /password/],
    ['http://a.example/m.m3u8', 'https://demo.example/', /over https/],
    ['https://a.example/m.MPD', page, /^hls\.js plays no DASH\. Choose Shaka or dash\.js\.$/],
  ])('refuses %j', (text, at, error) => {
    expect(readManifestUrl(text, at, 'hlsjs')).toEqual({ error: expect.stringMatching(error) });
  });

  it('says what is wrong with an answer', () => {
    const mpd = '<?xml version="1.0"?><MPD >';
    expect(judgeManifest(200, '\uFEFF#EXTM3U\n', 'hlsjs')).toBeUndefined();
    expect(judgeManifest(200, mpd, 'dashjs')).toBeUndefined();
    expect(judgeManifest(200, mpd, 'videojs')).toMatch(/^Video\.js plays no DASH/);
    expect(judgeManifest(200, '#EXTM3U', 'dashjs')).toMatch(/^dash\.js plays no HLS.*hls\.js, Shaka or Video\.js/);
    expect(judgeManifest(404, '#EXTM3U', 'hlsjs')).toMatch(/HTTP 404/);
    expect(judgeManifest(200, '<!doctype html>', 'hlsjs')).toMatch(/#EXTM3U.*MPD/);
    expect(judgeFailure('https://a.example/m', page, true)).toMatch(
      /a\.example answers.*pages of http:\/\/127\.0\.0\.1:8080.*CORS/,
    );
    expect(judgeFailure('https://a.example/m', page, false)).toBe('a.example does not answer.');
  });

  it('says what is not shared', () => {
    expect(sharedFrom('http://127.0.0.1:8080/x.m3u8', page)).toBe('');
    expect(sharedFrom('https://a.example/x.m3u8', page)).toMatch(/a\.example is no host.*--site/);
  });
});
