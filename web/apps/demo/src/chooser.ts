import { judgeFailure, judgeManifest, readManifestUrl, sharedFrom } from './manifest';
import { choices, type PlayerName } from './players/choice';

/** As much of an answer is looked at. */
const lookedAt = 4096;
const waitMs = 10_000;

/** The form for a manifest of one's own. The stream is asked for before the page goes to it, so that what is wrong is said in words. */
export function offerManifest(button: HTMLElement, dialog: HTMLDialogElement, playing: PlayerName): void {
  const form = dialog.querySelector('form')!;
  const input = form.querySelector('input')!;
  const says = form.querySelector<HTMLElement>('.says')!;
  const submit = form.querySelector<HTMLButtonElement>('[type="submit"]')!;
  const select = form.querySelector('select')!;
  list(select, playing);
  let accepted = '';
  button.addEventListener('click', () => dialog.showModal());
  for (const field of [input, select]) {
    field.addEventListener('input', () => {
      accepted = '';
      says.textContent = '';
      submit.textContent = 'Play';
    });
  }
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const player = select.value as PlayerName;
    if (accepted !== '') return goTo({ src: accepted, player });
    const read = readManifestUrl(input.value, location.href, player);
    if ('error' in read) {
      says.textContent = read.error;
      return;
    }
    submit.disabled = true;
    says.textContent = 'Asking the server …';
    const error = await examine(read.url, player);
    submit.disabled = false;
    const warning = sharedFrom(read.url, location.href);
    says.textContent = error ?? warning;
    if (error !== undefined) return;
    if (warning === '') return goTo({ src: read.url, player });
    accepted = read.url;
    submit.textContent = 'Play it all the same';
  });
}

/** The list of players beside the film: another one plays the same. `refused` is what the query asked for in vain, as a sentence. */
export function offerPlayers(select: HTMLSelectElement, playing: PlayerName, refused: string | undefined): void {
  list(select, playing);
  select.addEventListener('change', () => goTo({ player: select.value as PlayerName }));
  const note = document.querySelector<HTMLElement>('#refused')!;
  note.hidden = refused === undefined;
  note.textContent = refused ?? '';
}

function list(select: HTMLSelectElement, playing: PlayerName): void {
  select.replaceChildren(...Object.entries(choices).map(([name, { label }]) => new Option(label, name)));
  // A browser that goes back would show what was chosen last.
  select.autocomplete = 'off';
  select.value = playing;
}

/** The choice stands in the address, so that it stays with a reload and with viewers that are added. */
function goTo(query: { src?: string; player: PlayerName }): void {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  location.href = url.href;
}

/** What is in the way of a manifest, or undefined. */
async function examine(url: string, player: PlayerName): Promise<string | undefined> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(waitMs) });
    return judgeManifest(response.status, await beginning(response), player);
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
