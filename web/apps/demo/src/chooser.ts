import { judgeFailure, judgeManifest, readManifestUrl, sharedFrom } from './manifest';

/** As much of an answer is looked at. */
const lookedAt = 4096;
const waitMs = 10_000;

/** The form for a manifest of one's own. The stream is asked for before the page goes to it, so that what is wrong is said in words. */
export function offerManifest(button: HTMLElement, dialog: HTMLDialogElement): void {
  const form = dialog.querySelector('form')!;
  const input = form.querySelector('input')!;
  const says = form.querySelector<HTMLElement>('.says')!;
  const submit = form.querySelector<HTMLButtonElement>('[type="submit"]')!;
  let accepted = '';
  button.addEventListener('click', () => dialog.showModal());
  input.addEventListener('input', () => {
    accepted = '';
    says.textContent = '';
    submit.textContent = 'Play';
  });
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (accepted !== '') return goTo(accepted);
    const read = readManifestUrl(input.value, location.href);
    if ('error' in read) {
      says.textContent = read.error;
      return;
    }
    submit.disabled = true;
    says.textContent = 'Asking the server …';
    const error = await examine(read.url);
    submit.disabled = false;
    const warning = sharedFrom(read.url, location.href);
    says.textContent = error ?? warning;
    if (error !== undefined) return;
    if (warning === '') return goTo(read.url);
    accepted = read.url;
    submit.textContent = 'Play it all the same';
  });
}

function goTo(src: string): void {
  const url = new URL(location.href);
  url.searchParams.set('src', src);
  location.href = url.href;
}

/** What is in the way of a manifest, or undefined. */
async function examine(url: string): Promise<string | undefined> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(waitMs) });
    return judgeManifest(response.status, await beginning(response));
  } catch {
    const reached = await fetch(url, { mode: 'no-cors', signal: AbortSignal.timeout(waitMs) }).then(
      (response) => response.body?.cancel().then(() => true) ?? true,
      () => false,
    );
    return judgeFailure(url, location.href, reached);
  }
}

async function beginning(response: Response): Promise<string> {
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  let text = '';
  while (text.length < lookedAt) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
  }
  void reader.cancel();
  return text;
}
