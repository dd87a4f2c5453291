"use strict";
// The page is packed with zlib. This file unpacks it in every browser, without waiting: RFC 1951.

const LENGTHS = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258];
const LENGTH_BITS = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const DISTANCES = [1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577];
const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

// a Huffman code from the lengths of its words: how many there are of each length, and the symbols
function huffman(lengths) {
  const counts = new Uint16Array(16), starts = new Uint16Array(17), symbols = new Uint16Array(lengths.length);
  for (const n of lengths) counts[n] += 1;
  counts[0] = 0;
  for (let n = 1; n < 16; n++) starts[n + 1] = starts[n] + counts[n];
  lengths.forEach((n, symbol) => { if (n) symbols[starts[n]++] = symbol; });
  return { counts, symbols };
}

function inflate(bytes, size) {
  const out = new Uint8Array(size);
  let at = 2, buffer = 0, held = 0, end = 0;  // 2: the header of zlib
  const bits = (n) => {
    while (held < n) { buffer |= bytes[at++] << held; held += 8; }
    const value = buffer & ((1 << n) - 1);
    buffer >>>= n;
    held -= n;
    return value;
  };
  const symbol = ({ counts, symbols }) => {
    let code = 0, first = 0, index = 0;
    for (let n = 1; n < 16; n++) {
      code |= bits(1);
      if (code - counts[n] < first) return symbols[index + code - first];
      index += counts[n];
      first = (first + counts[n]) << 1;
      code <<= 1;
    }
    throw new Error("inflate: a code that does not exist");
  };
  const codes = () => {  // of this block: for letters and lengths, and for distances
    const letters = bits(5) + 257, distances = bits(5) + 1, short = new Array(19).fill(0), lengths = [];
    for (let i = 0, n = bits(4) + 4; i < n; i++) short[ORDER[i]] = bits(3);
    const code = huffman(short);
    while (lengths.length < letters + distances) {
      const s = symbol(code);
      if (s < 16) lengths.push(s);
      else if (s === 16) lengths.push(...new Array(3 + bits(2)).fill(lengths.at(-1)));
      else lengths.push(...new Array(s === 17 ? 3 + bits(3) : 11 + bits(7)).fill(0));
    }
    return [huffman(lengths.slice(0, letters)), huffman(lengths.slice(letters))];
  };
  const fixed = () => [huffman(Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8))), huffman(new Array(30).fill(5))];
  for (let last = 0; !last;) {
    last = bits(1);
    const kind = bits(2);
    if (kind === 0) {  // stored as it is
      at -= held >> 3;
      buffer = held = 0;
      const n = bytes[at] | (bytes[at + 1] << 8);
      out.set(bytes.subarray(at + 4, at + 4 + n), end);
      at += 4 + n;
      end += n;
      continue;
    }
    const [letters, distances] = kind === 1 ? fixed() : codes();
    for (let s = symbol(letters); s !== 256; s = symbol(letters)) {
      if (s < 256) { out[end++] = s; continue; }
      const n = LENGTHS[s - 257] + bits(LENGTH_BITS[s - 257]), d = symbol(distances);
      const back = DISTANCES[d] + bits(d < 2 ? 0 : (d >> 1) - 1);
      for (let i = 0; i < n; i++, end++) out[end] = out[end - back];
    }
  }
  return out;
}

// the bytes of an element that holds them packed, in base64
function unpacked(id) {
  const element = document.querySelector(id);
  return inflate(Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0)), Number(element.dataset.size));
}

const words = (id) => new TextDecoder().decode(unpacked(id));
