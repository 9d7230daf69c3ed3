// docs/papers.md: the tables of the papers whose experiments are repeated here, beside what docs/benchmarks/results.jsonl has of them.
const row = (...cells) => `| ${cells.join(' | ')} |`;
const table = (head, rows) => [row(...head), row(...head.map(() => '---')), ...rows.map((r) => row(...r))].join('\n');
const short = (v) => (Math.abs(v) >= 1000 ? Math.round(v).toLocaleString('en-US') : String(Number(v.toPrecision(3))));
const nothing = 'not measured';
/** Marks what the machine was too busy for. */
const unsure = '†';

/** The pairs of ends, by their names in cases of `leeway-lab bench peers`; those of browsers have the paper's pair beside them. */
const pairs = [
  { name: 'firefox-firefox', head: 'Firefox–Firefox', letters: 'F-F' },
  { name: 'firefox-chromium', head: 'Firefox–Chromium', letters: 'F-C' },
  { name: 'chromium-chromium', head: 'Chromium–Chromium', letters: 'C-C' },
  { name: 'chromium-firefox', head: 'Chromium–Firefox', letters: 'C-F' },
  { name: 'firefox-ours', head: 'Firefox–Go' },
  { name: 'chromium-ours', head: 'Chromium–Go' },
  { name: 'ours-chromium', head: 'Go–Chromium' },
  { name: 'ours', head: 'Go–Go' },
  { name: 'pion', head: 'pion–pion' },
];
const ways = [
  ['21m-wlan', '21M 3G→WLAN', 54],
  ['256k-wlan', '256k→WLAN', 124],
  ['21m-256k', '21M→256k', 170],
  ['wlan-21m', 'WLAN→21M', 54],
  ['wlan-256k', 'WLAN→256k', 124],
  ['256k-21m', '256k→21M', 170],
  ['phone-phone', 'phone→phone WLAN', 8],
  ['pc-pc', 'PC→PC WLAN', 4],
  ['phone-pc', 'phone→PC WLAN', 6],
];

/** One figure of a case; undefined where it was not measured. */
const look = (results, name, figure) => {
  const result = results.get(name);
  const found = result?.figures.find((f) => f.name === figure);
  return found && { ...found, runs: result.certified || result.runs, certified: result.certified > 0 };
};
const mark = (f, text) => (f.certified ? text : `${text} ${unsure}`);
const range = (f) => (f.runs > 1 && f.min !== f.max ? ` (${short(f.min)}–${short(f.max)})` : '');
const cell = (f, deviation) =>
  f ? mark(f, `${short(f.median)}${deviation ? ` ± ${short(deviation.median)}` : ''}${range(f)}`) : nothing;
const theirs = (value) => (value === null || value === undefined ? '' : Array.isArray(value) ? (value.length > 1 ? `${short(value[0])} ± ${short(value[1])}` : short(value[0])) : short(value));

/** A picture of groups of bars: what was not measured leaves its place empty. */
function bars(title, unit, groups) {
  const [left, high, gap] = [150, 9, 10];
  const most = Math.max(...groups.flatMap(({ bars }) => bars.map(({ value }) => value ?? 0)));
  const escape = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;');
  let y = 34;
  const drawn = groups.flatMap(({ name, bars }) => {
    const head = `<text x="${left - 6}" y="${y + (high * bars.length) / 2 + 4}" text-anchor="end">${escape(name)}</text>`;
    const each = bars.map(({ value, color, label }) => {
      const at = y;
      y += high;
      if (value === undefined) return '';
      const width = ((value / most) * 440).toFixed(1);
      return `<rect x="${left}" y="${at}" width="${width}" height="${high - 1}" fill="${color}"/><text x="${left + Number(width) + 4}" y="${at + 8}" font-size="8">${escape(label)} ${short(value)}</text>`;
    });
    y += gap;
    return [head, ...each];
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 ${y}" font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/><text x="8" y="18" font-size="13">${escape(title)}, ${unit}</text>\n${drawn.filter(Boolean).join('\n')}\n</svg>\n`;
}
const paperColor = '#b9b9b9';
const colors = ['#0b5cad', '#e08214', '#3a8f3a', '#8a3ab9'];
/** Four pairs are enough in a picture. */
const drawnPairs = ['ours', 'pion', 'chromium-ours', 'chromium-chromium'].map((name) => pairs.find((pair) => pair.name === name));
const oursDrawn = (results, nameOf, figure) =>
  drawnPairs.map(({ name, head }, i) => ({ value: look(results, nameOf(name), figure)?.median, color: colors[i], label: head }));

const establishment = (results, { columns, rows }) => {
  const name = (way, pair) => `peers H1/${way}-${pair}`;
  const own = (way, { name: pair }) => cell(look(results, name(way, pair), 'ms'), look(results, name(way, pair), 'ms_sd'));
  const times = table(
    ['way', ...columns.map((c) => `paper ${c}`), ...pairs.map(({ head }) => head)],
    ways.map(([way, label]) => [label, ...rows[way].map(theirs), ...pairs.map((pair) => own(way, pair))]),
  );
  const trips = table(
    ['way', 'round trip, ms', ...pairs.map(({ head }) => head)],
    ways.map(([way, label, rtt]) => [label, rtt, ...pairs.map(({ name: pair }) => cell(look(results, name(way, pair), 'round_trips')))]),
  );
  const picture = bars('H1: from the first word to an open channel', 'ms', ways.map(([way, label]) => ({
    name: label,
    bars: [{ value: rows[way][columns.indexOf('C-C')][0], color: paperColor, label: 'paper C-C' }, ...oursDrawn(results, (pair) => name(way, pair), 'ms')],
  })));
  return { times, trips, picture };
};

const weights = (results, { columns, rows }) => {
  const labels = { packets: 'packets', bytes: 'bytes', peer_packets: 'of these between the peers, packets', peer_bytes: 'bytes', stun_packets: 'to the STUN server, packets', stun_bytes: 'bytes', signaling_bytes: 'of signaling, bytes' };
  return table(
    ['client side', ...columns.map((c) => `paper ${c}`), ...pairs.map(({ head }) => head)],
    Object.entries(labels).map(([figure, label]) => [label, ...rows[figure].map(theirs), ...pairs.map(({ name }) => (figure.startsWith('stun') ? 'none in the lab' : cell(look(results, `peers H2/${name}`, figure))))]),
  );
};

const idleness = (results, { columns, rows }) => {
  const kb = (f) => (f ? mark(f, short(f.median / 1000)) : nothing);
  const list = [1, 10, 100, 1000].flatMap((n) => [
    ['Go–Go', 'ours', 'bits_per_second_per_link', 'bits_per_second_per_link'],
    ['pion–pion', 'pion', 'up_bits_per_second_per_link', 'down_bits_per_second_per_link'],
    ...pairs.filter((pair) => /chromium|firefox/.test(pair.name)).map((pair) => [pair.head, pair.name, 'up_bits_per_second_per_link', 'down_bits_per_second_per_link']),
  ].flatMap(([head, kind, up, down]) => {
    const name = `peers H3/${kind}-${n}`;
    if (!results.has(name)) return [];
    return [[`${head}, ${n.toLocaleString('en-US')}`, kb(look(results, name, 'rss_bytes_per_link')), kb(look(results, name, up)), kb(look(results, name, down))]];
  }));
  const paper = columns.map((c, i) => [`paper ${c}`, ...['memory_kb', 'keepalive_up_kbit_s', 'keepalive_down_kbit_s'].map((r) => short(rows[r][i]))]);
  return table(['connections', 'memory of each, kB', 'keepalive up, kbit/s', 'down, kbit/s'], [...paper, ...(list.length > 0 ? list : [['ours', nothing, nothing, nothing]])]);
};

const loads = (results, { columns, rows }) => {
  const label = { F: 'paper, Firefox', C: 'paper, Chrome' };
  const paper = Object.entries(rows).map(([name, cells]) => [`${label[name[0]]}, ${name.slice(2)} Mbit/s`, ...cells.map(theirs), '']);
  const own = pairs.flatMap(({ head, name: kind }) => [5, 10, 15].flatMap((rate) => {
    const name = `peers H4/${kind}-${rate}mbit`;
    if (!results.has(name)) return [];
    return [[`${head}, ${rate} Mbit/s`, ...columns.map((n) => (look(results, name, `cpu_${n}`) ? cell(look(results, name, `cpu_${n}`)) : '')), cell(look(results, name, 'cpu_50_vs_1'))]];
  }));
  const picture = bars('H4: processor of the client at 15 Mbit/s, by connections', '%', ['1', '10', '20', '50'].map((n) => ({
    name: n === '1' ? 'one connection' : `${n} connections`,
    bars: [{ value: rows['C-15'][columns.indexOf(n)], color: paperColor, label: 'paper, Chrome' }, ...oursDrawn(results, (kind) => `peers H4/${kind}-15mbit`, `cpu_${n}`)],
  })));
  return { table: table(['client, % of a processor', ...columns.map((n) => (n === '1' ? 'one connection' : `${n} connections`)), '50 against 1'], [...paper, ...own]), picture };
};

const approaches = [
  ['a1', 'A1: one channel, one file after the other', 'a1'],
  ['a1_ahead', 'A1, the next file asked for ahead', ''],
  ...[2, 5, 8, 10].map((n) => [`a2_channels_${n}`, `A2: ${n} channels of one connection`, n === 5 || n === 10 ? `a2-${n}` : '']),
  ...[2, 5, 10].map((n) => [`a2_connections_${n}`, `A2 as it was run: ${n} connections to one peer`, n === 2 ? '' : `a2-${n}`]),
  ...[2, 5, 10].map((n) => [`a3_${n}`, `A3: ${n} connections to ${n} peers`, n === 2 ? '' : `a3-${n}`]),
  ...['1x1', '1x2', '2x1', '2x2', '5x2'].map((n) => [`a4_${n}`, `A4: pieces of one segment, ${n.replace('x', ' peers × ')} channels`.replace('1 peers', '1 peer'), '']),
];
const movers = [
  ['ours', 'Go–Go'], ['pion', 'pion–pion'], ['chromium-ours', 'Chromium–Go'], ['chromium-chromium', 'Chromium–Chromium'],
  ['chromium-plain', 'Chromium–Chromium, channels alone'], ['firefox-ours', 'Firefox–Go'], ['firefox-plain', 'Firefox–Firefox, channels alone'],
];

const transfers = (results, { columns, rows, efficiency }) => {
  const sections = [15, 10, 5].map((rate) => {
    const there = movers.filter(([kind]) => results.has(`peers H5/${kind}-${rate}mbit`));
    const name = (kind) => `peers H5/${kind}-${rate}mbit`;
    const lines = approaches.flatMap(([figure, label, paper]) => {
      const beside = columns.map((_, i) => theirs(rows[`${rate}-${paper}`]?.[i]));
      const own = there.map(([kind]) => {
        const f = look(results, name(kind), figure);
        return f ? `${cell(f, look(results, name(kind), `${figure}_sd`))}, ${short(look(results, name(kind), `${figure}_efficiency`).median)}` : '';
      });
      return own.some(Boolean) || beside.some(Boolean) ? [[label, ...beside, ...own]] : [];
    });
    const best = (label, figure, ...paper) => [label, ...paper, ...Array(columns.length - paper.length).fill(''), ...there.map(([kind]) => `**${cell(look(results, name(kind), figure))}**`)];
    const head = [`${rate} Mbit/s, ms`, ...columns.map((c) => `paper ${c}`), ...there.map(([, label]) => label)];
    const ideal = Math.round(8000 / rate);
    return [
      `Payload alone takes ${ideal.toLocaleString('en-US')} ms.`,
      table(head, [...lines, best('efficiency of the quickest', 'best_efficiency'), best(`of the payload's ideal`, 'best_of_payload', short(efficiency[rate]))]),
    ].join('\n\n');
  });
  const drawn = approaches.filter(([figure]) => ['a1', 'a1_ahead', 'a2_channels_5', 'a2_connections_5', 'a2_connections_10', 'a3_5', 'a3_10', 'a4_2x2'].includes(figure));
  const picture = bars('H5: ten files of 100,000 B at 15 Mbit/s', 'ms', drawn.map(([figure, label, paper]) => ({
    name: label.split(':')[0] === label ? 'A1 ahead' : `${label.split(':')[0].replace(' as it was run', '*')}, ${figure.split('_').pop()}`,
    bars: [{ value: rows[`15-${paper}`]?.[columns.indexOf('C-C')]?.[0], color: paperColor, label: 'paper C-C' }, ...oursDrawn(results, (kind) => `peers H5/${kind}-15mbit`, figure)],
  })));
  return { text: sections.join('\n\n'), picture };
};

/** The different values of results, for a sentence. */
const different = (all, of) => [...new Set(all.map(of))].sort().join(', ');

/** With what results were measured, and when. */
const measuredWith = (all) => {
  const set = (of) => different(all, of);
  return `Commits ${set(({ machine }) => machine.commit || 'not noted')}; recorded ${set(({ recorded }) => recorded?.date ?? 'without a date')}; ${set(({ machine: m }) => `${m.cpu}, ${m.cores} cores (shared), Linux ${m.kernel}, ${m.go}, ${(m.browsers ?? []).join(', ')}`)}.`;
};

/** Where the figures of `leeway-lab bench peers` come from. */
const origin = (results) => {
  const all = [...results.values()].filter(({ bench }) => bench === 'peers');
  if (all.length === 0) return 'Nothing was measured yet.';
  const set = (of) => different(all, of);
  const busy = all.filter(({ certified }) => !certified).length;
  return [
    `${all.length} cases; runs of a case: ${set(({ runs }) => runs)}; links or transfers in a run: 10 and 5 unless a row of [the appendix](benchmarks/appendix.md) says otherwise.`,
    measuredWith(all),
    `${busy} of these cases are marked ${unsure}: the machine did other work beside them, and had less than 15 % of its processors to spare in each run, or packets were late. Such times are too long by an unknown part, and nothing is claimed from them.`,
  ].join(' ');
};

/** The papers' units for those of the benches. */
const turned = { s: [1000, 'ms'], 'MB/s': [8, 'Mbit/s'] };
const inPapersUnit = (f) => {
  const [factor, unit] = turned[f.unit] ?? [1, f.unit];
  return { ...f, unit, median: f.median * factor, min: f.min * factor, max: f.max * factor };
};

const others = (results, { heading, about, rows }) => {
  const all = [...new Set(rows.map(([, , , name]) => results.get(name)).filter(Boolean))];
  return [
    `## ${heading}`,
    about,
    ...(all.length > 0 ? [measuredWith(all)] : []),
    table(['', 'what', 'paper', 'ours', 'case'], rows.map(([id, what, paper, name, figure, unit]) => {
      const found = look(results, name, figure);
      const f = found && inPapersUnit(found);
      return [id, what, paper, f ? `${cell(f)} ${f.unit || unit}`.trim() : nothing, f ? `\`${name}\`` : ''];
    })),
  ].join('\n\n');
};

/** The page, and its pictures by their paths. */
export function papers(results, heikkinen, rest) {
  const h1 = establishment(results, heikkinen.H1);
  const h4 = loads(results, heikkinen.H4);
  const h5 = transfers(results, heikkinen.H5);
  const page = `${[
    "# The papers' tables, and ours",
    'Generated by `node scripts/benchmarks.mjs`. Four papers measured what this project builds on. Their figures stand beside ours; where there is none of ours the row says so. Their times are of telephones and browsers of 2014 on live networks, ours of one machine with emulated lines ([netlab](netlab.md)): compare shapes and round trips, not milliseconds.',
    '## H: Heikkinen et al., Performance Evaluation of Distributed Data Delivery on Mobile Devices Using WebRTC',
    '`leeway-lab bench peers --case \'H1/*\'` and so on. F is Firefox 33, C Chrome 39, client first; ours are Chromium, Firefox with the library, and Go. *pion–pion* has nothing of ours around it.',
    origin(results),
    '### H1: establishment',
    `From the client's first word to its open channel, signaling included, ms: mean ± standard deviation over the links of a run (range of the runs' means). Lines have the paper's rates; delays are 60 ms (256k), 25 ms (21M, behind a NAT), 2 ms (WLAN) and 1 ms (PC) one way, and signals go by a server 20 ms away from the middle.`,
    h1.times,
    '![Establishment by way and pair](benchmarks/papers-h1.svg)',
    'Round trips from the answer at the client until channels are open at both ends. Classic WebRTC needs six. Goals: 4 between ours, 6 with a browser, where a round trip takes 50 ms or more; on shorter ways the time of the processors counts, and not the way.',
    h1.trips,
    '### H2: packets and bytes of an establishment',
    `On the client's line, IP headers included; ours until both have said hello.`,
    weights(results, heikkinen.H2),
    '### H3: idle connections',
    'Memory of the client; keepalive with IP headers. Of Go–Go one direction is told, that of the side which sends more (`leeway-lab bench idle`).',
    idleness(results, heikkinen.H3),
    '### H4: processor by the number of connections',
    `The client fetches files of 1 MB in a loop. The paper's figures are of a telephone with four cores, about 10 % of idling included; ours are of one processor of the machine. The shape to reproduce: processor time follows the bytes, and grows slowly with connections.`,
    h4.table,
    '![Processor by connections](benchmarks/papers-h4.svg)',
    '### H5: three ways to move files, and a fourth',
    `Ten files of 100,000 B through a queue of 50 packets, 6 ms round trip: ms, mean ± standard deviation of the transfers of a run (range of the runs' means), and efficiency. Efficiency is (bytes on the wire ÷ rate + one round trip) ÷ time; the goal for the quickest approach is 0.95. What the paper called several channels were several connections: its figures stand beside both. A link of ours has at most 8 channels; the library's has always two.`,
    h5.text,
    '![Files by approach](benchmarks/papers-h5.svg)',
    ...rest.map((paper) => others(results, paper)),
  ].join('\n\n')}\n`;
  return new Map([
    ['docs/papers.md', page],
    ['docs/benchmarks/papers-h1.svg', h1.picture],
    ['docs/benchmarks/papers-h4.svg', h4.picture],
    ['docs/benchmarks/papers-h5.svg', h5.picture],
  ]);
}
