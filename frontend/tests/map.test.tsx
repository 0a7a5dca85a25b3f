import { cleanup, fireEvent, render, screen } from "@testing-library/preact";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { MapAnswer, MapBand, MapFile, SeenPlot } from "../src/api";
import { AtPlace, held } from "../src/pages/map_answer";
import { ChipGrid, strongest, whereIs } from "../src/pages/map_chip";
import { along, bandName, gradient, Interval, Legend, legendNumbers, spanOf, unitOf } from "../src/pages/map_legend";
import { opacityOf, viewOf } from "../src/pages/map_one";
import { degrees, digitsOf, distance, linesBetween, near, parsed, placed, stepOf, turned, written } from "../src/pages/map_places";
import { language, teach } from "../src/words";
import { map as words } from "../src/words/map";

vi.mock("../src/pages/map_view", () => ({ MapView: () => null })); // Leaflet needs a browser: see the browser tests

teach(words);
beforeEach(() => (language.value = "en"));
afterEach(cleanup);

const encoded = (values: number[]): string => btoa(String.fromCharCode(...new Uint8Array(new Float32Array(values).buffer)));
const band: MapBand = { name: "prediction", low: 10, high: 50, colours: ["#000000", "#ff0000", "#ffff00", "#ffffff"] };
const map: MapFile = { file: "maps/richness.tif", target: "richness", bounds: [[-37, 147], [-36, 149]], size: [90, 150], bands: [band] };
const plot: SeenPlot = { name: "plots.csv[3]", longitude: 147.5, latitude: -36.5, value: 34.4, weight: 0.4, km: 3.168 };
const answer: MapAnswer = {
  longitude: 147.844,
  latitude: -36.543,
  values: { prediction: 37.38, low: 30.13, high: 44.62, spread: 0.94, applicability: 0.085, "interval width": 14.49 },
  coverage: 0.9,
  chip: { size: [3, 3], attention: encoded([0.1, 0.1, 0.3, 0.1, 0.1, 0.1, 0.1, 0.1, NaN]), kind: "around" },
  plots: [plot, { ...plot, name: "plots.csv[9]", weight: 0.2, km: 0.25 }],
  num_plots: 68,
  missing: null,
};

describe("places", () => {
  test("degrees have a side, in the language of the reader", () => {
    expect(written({ latitude: -36.54321, longitude: 147.8 })).toBe("36.543° S, 147.8° E");
    expect(degrees(0, "longitude")).toBe("0°");
    expect(degrees(190, "longitude", 0)).toBe("170° W");
    language.value = "es";
    expect(written({ latitude: 4.5, longitude: -74.1 })).toBe("4,5° N, 74,1° O");
  });

  test.each([
    ["-36.5", "latitude", -36.5],
    ["36,5 S", "latitude", -36.5],
    ["−36.5°", "latitude", -36.5],
    ["74.1 W", "longitude", -74.1],
    ["74,1o", "longitude", -74.1],
    [" 147.8 E ", "longitude", 147.8],
    ["91", "latitude", null],
    ["12 E", "latitude", null],
    ["here", "longitude", null],
    ["", "longitude", null],
  ] as const)("%s is a %s of %s", (text, axis, value) => expect(parsed(text, axis)).toBe(value));

  test("an address that is no place is none", () => {
    expect(placed("-36.5,147.8")).toEqual({ latitude: -36.5, longitude: 147.8 });
    for (const text of [undefined, "", "1", "a,b", "91,0", "1,2,3", "0,Infinity"]) expect(placed(text)).toBeNull();
  });

  test("what lies beyond the antimeridian is drawn beside what it belongs to", () => {
    expect(turned(185)).toBe(-175);
    expect(turned(-180)).toBe(-180);
    expect(near(-175, 179)).toBe(185);
    expect(near(179, -175)).toBe(-181);
    expect(near(10, 20)).toBe(10);
  });

  test("a graticule has few lines at round degrees", () => {
    expect(stepOf(1.7, 7)).toBe(0.5);
    expect(linesBetween(146.9, 148.6, 0.5)).toEqual([147, 147.5, 148, 148.5]);
    expect(linesBetween(-0.3, 0.3, 0.1)).toEqual([-0.3, -0.2, -0.1, 0, 0.1, 0.2, 0.3]);
    expect(stepOf(360, 7)).toBe(90);
    expect(stepOf(10_000, 2)).toBe(90);
    expect([90, 1, 0.5, 0.02].map(digitsOf)).toEqual([0, 0, 1, 2]);
    for (const span of [350, 80, 9, 1.3, 0.04]) expect(linesBetween(0, span, stepOf(span, 7)).length).toBeLessThanOrEqual(8);
  });

  test("distances are in km, and in m where they are short", () => {
    expect(distance(3.168)).toBe("3.17 km");
    expect(distance(1234)).toBe("1,230 km");
    expect(distance(0.25)).toBe("250 m");
  });
});

describe("legend", () => {
  test("each colour has an equal part, without a fade between", () => {
    expect(gradient(["#000000", "#ffffff"])).toBe("linear-gradient(to right, #000000 0.000% 50.000%, #ffffff 50.000% 100.000%)");
  });

  test("numbers say that colours stay the same beyond the ends", () => {
    expect(legendNumbers(band)).toEqual(["≤ 10", "30", "≥ 50"]);
    expect(legendNumbers({ ...band, name: "applicability", low: 0, high: 2 })).toEqual(["0", "1", "≥ 2"]);
    expect(unitOf("spread", "richness")).toBe("richness");
    expect(unitOf("applicability", "richness")).toBe("thresholds of dissimilarity");
    expect([bandName("interval width"), bandName("their own")]).toEqual(["interval width", "their own"]);
    language.value = "es";
    expect(bandName("spread")).toBe("dispersión");
  });

  test("it is said as well as drawn", () => {
    render(<Legend band={band} target="richness" />);
    expect(screen.getByRole("img", { name: "prediction: from 10 to 50, richness" })).toBeTruthy();
  });

  test("an interval lies on the scale of the legend, which grows with it", () => {
    expect(spanOf(band, 20, 40)).toEqual({ from: 10, to: 50 });
    expect(spanOf(band, 0, 60)).toEqual({ from: 0, to: 60 });
    expect(along({ from: 10, to: 50 }, 20)).toBe(25);
    expect(along({ from: 1, to: 1 }, 1)).toBe(50);
    const { container } = render(<Interval band={band} value={30} low={20} high={60} />);
    const style = (part: string) => container.querySelector<HTMLElement>(part)!.style;
    expect([style(".range").left, style(".range").width, style(".dot").left, style(".colours").width]).toEqual(["20%", "80%", "40%", "80%"]);
    expect(screen.getByRole("img").getAttribute("aria-label")).toBe("On a scale from 10 to 60: 30, between 20 and 60.");
  });
});

describe("what is said of a place", () => {
  test("value, interval, spread, area, chip and plots", () => {
    render(<AtPlace answer={answer} map={map} />);
    const text = document.body.textContent!;
    for (const part of ["At 36.543° S, 147.844° E", "37.4 richness", "90 % interval: 30.1 to 44.6", "differ by 0.94", "Inside the area"])
      expect(text).toContain(part);
    expect(text).toContain("The 2 strongest of 68 known plots hold 60 % of the weight");
    expect(screen.getAllByRole("row").map((row) => row.textContent)).toEqual([
      "PlotWeightMeasuredDistance",
      "plots.csv[3]40 %34.43.17 km",
      "plots.csv[9]20 %34.4250 m",
    ]);
    expect(held(answer.plots)).toBeCloseTo(0.6);
  });

  test("where the model should not be believed, and where nothing is known", () => {
    const { rerender } = render(<AtPlace answer={{ ...answer, values: { ...answer.values, applicability: 1.7 } }} map={map} />);
    expect(document.querySelector(".warning")!.textContent).toContain("Outside the area of applicability (1.7 times");
    const nowhere = Object.fromEntries(Object.keys(answer.values).map((name) => [name, null]));
    rerender(<AtPlace answer={{ ...answer, values: nowhere, chip: null, plots: [], missing: "data" }} map={map} />);
    expect(document.body.textContent).toBe("At 36.543° S, 147.844° EThe map has no data here.");
    rerender(<AtPlace answer={{ ...answer, values: { prediction: 3 }, chip: null, plots: [], missing: "rasters" }} map={map} />);
    expect(document.body.textContent).toContain("the rasters of the map are no longer where they were");
    expect(document.querySelector(".interval")).toBeNull();
  });
});

describe("the chip", () => {
  test("cells are named from the middle", () => {
    expect([0, 4, 5, 7].map((cell) => whereIs(cell, [3, 3]))).toEqual(["1 up, 1 left", "the place itself", "1 right", "1 down"]);
    expect(strongest(Float32Array.of(NaN, 0.1, 0.5, 0.2))).toBe(2);
  });

  test("a number for every cell that is pointed at", () => {
    const { container } = render(<ChipGrid chip={answer.chip!} />);
    const cells = container.querySelectorAll(".cell");
    expect(cells.length).toBe(9);
    expect(container.querySelector(".readout")!.textContent).toBe("Most: 1 up, 1 right, 30 %. If it looked everywhere alike: 12.5 % each.");
    fireEvent.pointerEnter(cells[8]);
    expect(container.querySelector(".readout")!.textContent).toBe("1 down, 1 right: no data");
    expect(cells[8].className).toContain("nothing");
    fireEvent.pointerEnter(cells[0]);
    expect(container.querySelector(".readout")!.textContent).toBe("1 up, 1 left: 10 %");
  });
});

describe("the address", () => {
  test("a view is whole or none", () => {
    expect(viewOf({ lat: "-36.5", lon: "147.8", zoom: "9" })).toEqual({ latitude: -36.5, longitude: 147.8, zoom: 9 });
    for (const chosen of [{}, { lat: "1", lon: "2" }, { lat: "x", lon: "2", zoom: "3" }, { lat: "1", lon: "2", zoom: "99" }])
      expect(viewOf(chosen as Record<string, string>)).toBeNull();
  });

  test("an opacity is a share", () => {
    expect([undefined, "40", "-3", "1e9", "x"].map(opacityOf)).toEqual([100, 40, 0, 100, 100]);
  });
});
