// Places: how degrees are written and read, which lines of a graticule to draw, on which copy of the world something lies.
import { language, number, say } from "../words";

export interface Place {
  latitude: number;
  longitude: number;
}

export type Axis = "latitude" | "longitude";

const MOST: Record<Axis, number> = { latitude: 90, longitude: 540 };
const SIDES: Record<Axis, [string, string]> = { latitude: ["map.north", "map.south"], longitude: ["map.east", "map.west"] };

export const turned = (longitude: number): number => ((((longitude + 180) % 360) + 360) % 360) - 180;

// The same meridian on the copy of the world that is nearest to another one: a map may reach beyond 180°.
export const near = (longitude: number, reference: number): number => longitude + 360 * Math.round((reference - longitude) / 360);

export function degrees(value: number, axis: Axis, digits = 3): string {
  const seen = axis === "longitude" ? turned(value) : value;
  const size = Math.abs(seen).toLocaleString(language.value, { maximumFractionDigits: digits });
  if (Number(Math.abs(seen).toFixed(digits)) === 0) return `${size}°`;
  return `${size}° ${say(SIDES[axis][seen < 0 ? 1 : 0])}`;
}

export const written = ({ latitude, longitude }: Place): string => `${degrees(latitude, "latitude")}, ${degrees(longitude, "longitude")}`;

// "36.5 S", "−36,5°", "147.8 E"; null if it is none.
export function parsed(text: string, axis: Axis): number | null {
  const found = /^\s*([+\-−]?)\s*(\d+(?:[.,]\d+)?|[.,]\d+)\s*°?\s*([A-Za-z]?)\s*$/.exec(text);
  if (!found) return null;
  const [, sign, size, letter] = found;
  const side = letter.toUpperCase();
  const [positive, negative] = axis === "latitude" ? ["N", "S"] : ["E", "WO"];
  if (side && side !== positive && !negative.includes(side)) return null;
  const isNegative = (sign !== "" && sign !== "+") !== (side !== "" && negative.includes(side));
  const value = Number(size.replace(",", "."));
  return value > MOST[axis] ? null : isNegative ? -value : value;
}

// "-36.5,147.8" of the address.
export function placed(text: string | undefined): Place | null {
  const parts = (text ?? "").split(",").map(Number);
  if (!text || parts.length !== 2 || !parts.every(Number.isFinite)) return null;
  const [latitude, longitude] = parts;
  return Math.abs(latitude) <= 90 && Math.abs(longitude) <= 540 ? { latitude, longitude } : null;
}

export const inAddress = (value: number): string => String(Number(value.toFixed(5)));

const STEPS = [90, 45, 30, 20, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001];

// The distance between lines, so that there are at most `most` of them.
export const stepOf = (span: number, most: number): number => [...STEPS].reverse().find((step) => span / step <= most) ?? STEPS[0];

export function linesBetween(low: number, high: number, step: number): number[] {
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, n) => Number(((first + n) * step).toFixed(6)));
}

export const digitsOf = (step: number): number => Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));

export function distance(km: number): string {
  return km < 1 ? `${number(1000 * km, 2)} m` : `${number(km)} km`;
}
