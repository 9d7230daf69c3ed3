/** Further scripts of the same build. */

/** The element of a further script, as that script finds it. */
export interface PartScript<T> extends HTMLScriptElement {
  take(part: T): void;
}

/** The element of the script that runs. */
export const own = document.currentScript as HTMLScriptElement | null;

/** Fetches one from an address, if it has this hash. */
export const fetchFrom = <T>(src: string, integrity: string, more?: object): Promise<T> =>
  new Promise((take, reject) => {
    /** The page has what it had: what the script left is in hand, or it left nothing. */
    const over = () => {
      script.remove();
      reject(src);
    };
    const script = Object.assign(document.createElement('script'), {
      // The scripts are of one build, and what they say to each other has no versions. A page that pins this script by a
      // hash has pinned the others with it.
      src,
      integrity,
      crossOrigin: 'anonymous',
      nonce: own?.nonce,
      take,
      onload: over,
      onerror: over,
      ...more,
    });
    document.head.append(script);
  });
