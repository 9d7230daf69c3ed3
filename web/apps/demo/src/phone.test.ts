import qrcode from 'qrcode-generator';
import { expect, it } from 'vitest';
import { describeReach, outline } from './phone';

it('draws each dark square of a code', () => {
  const code = qrcode(0, 'M');
  code.addData('https://192.168.1.5:8443/');
  code.make();
  const size = code.getModuleCount();
  let dark = 0;
  for (let row = 0; row < size; row++)
    for (let column = 0; column < size; column++) dark += Number(code.isDark(row, column));
  const path = outline(size, (row, column) => code.isDark(row, column));
  expect(path.split('z')).toHaveLength(dark + 1);
  expect(path.startsWith('M0 0h1v1h-1z')).toBe(true);
});

it('says how to be found, and what http keeps from a phone', () => {
  expect(describeReach([])).toMatch(/--listen 0\.0\.0\.0:8443 --open --tls-cert/);
  expect(describeReach(['http://192.168.1.5:8080/'])).toMatch(/origin alone/);
  expect(describeReach(['https://demo.example/', 'https://10.0.0.2/'])).toBe(
    'For a phone in the same network. If it is not found, try https://10.0.0.2/',
  );
});
