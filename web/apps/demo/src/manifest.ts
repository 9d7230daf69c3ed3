/** Rules of the form for a manifest of one's own. */
import { formatOf, type PlayerName, unplayable } from './players/choice';

/** The address that a text stands for on a page, or what is wrong with it. */
export function readManifestUrl(text: string, page: string, player: PlayerName): { url: string } | { error: string } {
  const trimmed = text.trim();
  if (trimmed === '')
    return { error: 'Write the address of a manifest, such as https://www.example.com/film/master.m3u8.' };
  if (!URL.canParse(trimmed, page)) return { error: 'This is no address of the web.' };
  const url = new URL(trimmed, page);
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    return { error: 'The address begins with https:// or http://.' };
  if (url.username !== '' || url.password !== '')
    return { error: 'The address holds a name or a password, which players do not send.' };
  if (url.protocol === 'http:' && new URL(page).protocol === 'https:') {
    return { error: 'This page came over https, and browsers then load nothing over http.' };
  }
  const error = unplayable(player, formatOf(url.href, page));
  if (error !== undefined) return { error };
  url.hash = '';
  return { url: url.href };
}

/** What is wrong with the answer to a request for a manifest, or undefined. */
export function judgeManifest(status: number, body: string, player: PlayerName): string | undefined {
  if (status < 200 || status > 299) return `The server answers with HTTP ${status}.`;
  const text = body.replace(/^\uFEFF/, '').trimStart();
  if (text.startsWith('#EXTM3U')) return unplayable(player, 'HLS');
  if (/<MPD[\s>]/.test(text)) return unplayable(player, 'DASH');
  return 'What the server answers is no manifest: it does not begin with #EXTM3U (HLS), and holds no MPD (DASH).';
}

/** What a request that failed says: `reached` if the same request without CORS was answered. */
export function judgeFailure(url: string, page: string, reached: boolean): string {
  const { host } = new URL(url);
  if (!reached) return `${host} does not answer.`;
  return `${host} answers, and does not let pages of ${new URL(page).origin} read it. It has to send Access-Control-Allow-Origin (CORS).`;
}

/** What to say before a stream plays that the demo's site does not name. */
export function sharedFrom(url: string, page: string): string {
  const { host } = new URL(url);
  if (host === new URL(page).host) return '';
  return `${host} is no host of this demo’s site: the stream plays, and viewers share nothing of it. To share it, run leeway up --site with a site that names the host.`;
}
