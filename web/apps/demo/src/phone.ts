/** The page's address for a phone on the same network, as a picture that its camera reads. */
export function offerPhone(button: HTMLElement, dialog: HTMLDialogElement, addresses: string): void {
  button.hidden = addresses === '';
  button.addEventListener('click', async () => {
    const found = addresses === 'loopback' ? [] : addresses.split(' ');
    const says = dialog.querySelector<HTMLElement>('.says')!;
    says.textContent = describeReach(found);
    const place = dialog.querySelector<HTMLElement>('.code')!;
    place.hidden = found.length === 0;
    if (found.length > 0) {
      const { default: qrcode } = await import('qrcode-generator');
      const code = qrcode(0, 'M');
      code.addData(found[0]!);
      code.make();
      const size = code.getModuleCount();
      place.querySelector('svg')!.setAttribute('viewBox', `-4 -4 ${size + 8} ${size + 8}`);
      place.querySelector('path')!.setAttribute(
        'd',
        outline(size, (row, column) => code.isDark(row, column)),
      );
      const link = place.querySelector('a')!;
      link.href = link.textContent = found[0]!;
    }
    dialog.showModal();
  });
}

/** What to say of the addresses that other machines find the page at. */
export function describeReach(addresses: string[]): string {
  const [first] = addresses;
  if (first === undefined) {
    return 'This demo listens on this machine alone. For the network: leeway up --listen 0.0.0.0:8443 --open --tls-cert cert.pem --tls-key key.pem';
  }
  const more = addresses.length > 1 ? ` If it is not found, try ${addresses.slice(1, 4).join(' or ')}` : '';
  if (first.startsWith('https:')) return `For a phone in the same network.${more}`;
  return `For a phone in the same network. Over http its browser lets no page share: it plays from the origin alone. With --tls-cert and --tls-key it takes part.${more}`;
}

/** A path of unit squares. */
export function outline(size: number, dark: (row: number, column: number) => boolean): string {
  let d = '';
  for (let row = 0; row < size; row++) {
    for (let column = 0; column < size; column++) if (dark(row, column)) d += `M${column} ${row}h1v1h-1z`;
  }
  return d;
}
