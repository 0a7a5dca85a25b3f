// Colours of numbers: magma from little to much, RdBu (reversed) for numbers on both sides of zero. As matplotlib has them,
// 256 colours of three bytes each.
const MAGMA =
  "AAADAAAEAAAGAQAHAQEJAQELAgINAgIPAwMRBAMTBAQVBQQXBgUZBwUbCAYdCQcfCgciCwgkDAkmDQooDgoqDwssEAwvEQwxEg0zFA01FQ44Fg46Fw88GA8/GhBBGxBEHBBGHhBJHxFLIBFNIhFQIxFSJRFVJhFXKBFZKhFcKxFeLRBgLxBiMBBlMhBnNBBoNQ9qNw9sOQ9uOw9vPA9xPg9yQA9zQg90Qw91RQ92Rw93SBB4ShB5SxB5TRF6TxF7UBJ7UhJ8UxN8VRN9VxR9WBV+WhV+WxZ+XRd+Xhd/YBh/YRh/Yxl/ZRqAZhqAaBuAaRyAaxyAbB2Abh6Bbx6BcR+Bcx+BdCCBdiGBdyGBeSKBeiKBfCOBfiSBfySBgSWBgiWBhCaBhSaBhyeBiSiBiiiBjCmAjSmAjyqAkSqAkiuAlCuAlSyAlyx/mS1/mi1/nC5/ni5+ny9+oS9+ozB+pDB9pjF9pzF9qTJ8qzN8rDN7rjR7sDR7sTV6szV6tTZ5tjZ5uDd4uTd4uzh3vTl3vjl2wDp1wjp1wzt0xTx0xjxzyD1yyj5yyz5xzT9wzkBw0EFv0UJu00Jt1ENt1kRs10Vr2UZq2kdp3Ehp3Ulo3kpn4Etm4Uxm4k1l5E5k5VBj5lFi51Ji6FRh6lVg61Zg7Fhf7Vlf7lte7l1d715d8GBd8WFc8mNc82Vc82db9Ghb9Wpb9Wxb9m5b9nBb93Fb93Nc+HVc+Hdc+Xlc+Xtd+X1d+n9e+oBe+oJf+4Rg+4Zg+4hh+4pi/Ixj/I5j/JBk/JJl/JNm/ZVn/Zdo/Zlp/Ztq/Z1r/Z9s/aFu/aJv/aRw/qZx/qhz/qp0/qx1/q52/q94/rF5/rN7/rV8/rd9/rl//ruA/ryC/r6D/sCF/sKG/sSI/saJ/seL/smN/suO/c2Q/c+S/dGT/dKV/dSX/daY/dia/dqc/dyd/d2f/d+h/eGj/OOl/OWm/Oao/Oiq/Oqs/Oyu/O6w/PCx/PGz/PO1/PW3+/e5+/m7+/q9+/y/";
const RED_BLUE =
  "BTBhBjJjBzRmCDZpCThsCjpvCzxyDD51DUB4DkN7D0V+EUeBEkmEE0uHFE2KFU+NFlGQF1STGFaVGViYGlqbHFyeHV6hHmCkH2KnIGSqIWasI2itJGquJWyvJ22wKG+wKXGxK3OyLHWzLXa0L3i1MHq2MXy3M324NH+5NYG5N4O6OIS7OYa8O4i9PIq+PYu/P43AQI/BQZHCQ5PDRpTESZbFTJjGT5rHUpzIVZ7JWKDKW6LLXqTMYabNZajOaKrPa6zQbq7RcbDSdLLTd7TVerbWfbjXgLrYhLzZh77aisDbjcLckMTdk8XelcbfmMjfmsngncrhn8vhos3ipM7jp8/kqdDkq9LlrtPmsNTms9XntdfouNjoutnpvdrqv9zrwt3rxN7sx9/tyeHtzOLuzuPv0eXw0uXw0+bw1efw1ufx2Ojx2enx2+nx3Ory3uvy3+zy4ezz4u3z5O7z5e7z5+/06PD06vH06/H07fL17vP18PP18fT28/X29PX29vb29/b29/X09/Ty9/Pw+PLu+PDs+O/q+O7o+e3n+ezl+evj+erh+enf+ujd+ufb+uXZ+uTX++PW++LU++HS++DQ/N/O/N7M/N3K/NzI/dvH/NjE/NbB+9S++9K8+9C5+s62+sy0+sqx+ceu+cWr+cOp+MGm+L+j+L2h97ue97mb97eZ9rSW9rKT9bCQ9a6O9ayL9KqI9KiG9KaD86OA8qB+8Z5875t67ph47ZZ27JN065By6o5w6Itu54hs5oVq5YNo5IBl4n1j4Xth4Hhf33Vd3nJb3XBZ221X2mpV2WhT2GVR12JP1mBN1F1L01pK0VdJ0FRHzlFGzU9FzExDyklCyUZBx0M/xkA+xT48wzs7wjg6wDU4vzI3vjA2vC00uyozuScyuCQxtiEvtR8utBwtshkrsBcqrRYqqhUppxQppBMooRIonhEnmxAnmRAnlg8mkw4mkA0ljQwligskhwokhAkjgQgjfgciewYieAUhdQQhcgMgbwIgbAEfaQAfZwAf";

const bytes = (text: string): Uint8Array => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

export const tables = { heat: bytes(MAGMA), signed: bytes(RED_BLUE) };

export interface Scale {
  low: number;
  high: number;
  table: keyof typeof tables;
  isCut?: boolean; // some numbers are above `high`
  isFlipped?: boolean; // little is light
}

type Numbers = ArrayLike<number> & Iterable<number>;

// From the least to the most; where there are negative numbers, zero is in the middle. `top` leaves out the strongest, so
// that one outlier does not turn all else black.
export function scaleOf(values: Numbers, { fromZero = false, top = 1 } = {}): Scale {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (!values.length) return { low: 0, high: 1, table: "heat" };
  if (low < 0) {
    const most = Math.max(-low, high);
    return { low: -most, high: most, table: "signed" };
  }
  let isCut = false;
  if (top < 1) {
    const step = Math.max(1, Math.floor(values.length / 50000));
    const some = Float32Array.from({ length: Math.ceil(values.length / step) }, (_, n) => values[n * step]).sort();
    const share = some[Math.floor(top * (some.length - 1))];
    if (share > 0 && share < high) [high, isCut] = [share, true];
  }
  if (fromZero || high <= low) low = 0;
  return { low, high: high > low ? high : low + 1, table: "heat", isCut };
}

// On a page of text, little is the colour of the paper; on a picture, little is dark.
export const onPaper = (scale: Scale, isDark: boolean): Scale => ({
  ...scale,
  isFlipped: scale.table === "heat" && !isDark,
});

// Where the colour of a number begins in its table.
export function colourAt(scale: Scale, value: number): number {
  const share = Math.min(1, Math.max(0, (value - scale.low) / (scale.high - scale.low)));
  return 3 * Math.round(255 * (scale.isFlipped ? 1 - share : share));
}

export function cssColour(scale: Scale, value: number): { background: string; color: string } {
  const at = colourAt(scale, value);
  const [red, green, blue] = tables[scale.table].subarray(at, at + 3);
  // Of black and white, the one with the higher contrast (WCAG 2): it is always above 4.5.
  const linear = (part: number) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);
  const isLight = 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue) > 0.179;
  return { background: `rgb(${red}, ${green}, ${blue})`, color: isLight ? "#000000" : "#ffffff" };
}

// A tile of numbers as pixels, one for each.
export function tilePixels(values: ArrayLike<number>, scale: Scale, start = 0, count = values.length - start): Uint8ClampedArray<ArrayBuffer> {
  const table = tables[scale.table];
  const out = new Uint8ClampedArray(4 * count);
  for (let n = 0; n < count; n++) {
    const at = colourAt(scale, values[start + n]);
    for (let c = 0; c < 3; c++) out[4 * n + c] = table[at + c];
    out[4 * n + 3] = 255;
  }
  return out;
}
