// A document's figures that come from benchmarks: each stands before a comment that names its row, as `8.6 kB<!-- tracker idle/plain
// rss_bytes_per_idle_connection -->`. Its unit says how the row's is turned into it; of seconds a gigabyte, Mbit/s are what a core carries.
const figure = /(?:[\d.,]+|\?)( kB| MB| s| Mbit\/s)?<!-- (\S+) (\S+) (\S+) -->/g;
const turned = {
  ' kB': (bytes) => bytes / 1e3,
  ' MB': (bytes) => bytes / 1e6,
  ' s': (seconds) => seconds,
  ' Mbit/s': (secondsOfGigabyte) => 8000 / secondsOfGigabyte,
  '': (count) => count,
};

// fill puts in what cases (a Map by "BENCH CASE") measured, to two digits. What is of other cases stays; so does a row without a run
// that counts, of which missing is told.
export const fill = (text, cases, missing) =>
  text.replace(figure, (old, unit = '', bench, name, row) => {
    const found = cases.get(`${bench} ${name}`);
    if (!found) return old;
    const measured = found.certified === 0 ? undefined : found.figures.find((f) => f.name === row);
    if (!measured) {
      missing(`${bench} ${name} ${row}`);
      return old;
    }
    const value = Number(turned[unit](measured.median).toPrecision(2));
    return `${value.toLocaleString('en-US')}${unit}<!-- ${bench} ${name} ${row} -->`;
  });
