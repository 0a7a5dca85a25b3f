// What a demo shows: a small matrix with its numbers, lines, or vectors and their mixture.
import { cssColour, onPaper, scaleOf } from "../parts/colours";
import { isDark } from "../theme";
import { say } from "../words";
import { rounded, said, type MatrixPicture, type Picture, type PointsPicture } from "./learn_answers";
import { Chart } from "./learn_chart";

export function DemoPicture({ picture }: { picture: Picture }) {
  if (picture.kind === "matrix") return <SmallMatrix picture={picture} />;
  if (picture.kind === "points") return <Vectors picture={picture} />;
  const series = Object.entries(picture.series).map(([name, y]) => ({ label: said(picture.labels[name]), y }));
  return <Chart title={said(picture.title)} across={said(picture.x_label)} x={picture.x} series={series} logX={picture.log_x} logY={picture.log_y} marker={picture.marker} />;
}

const MOST_NUMBERS = 12; // columns with numbers in their cells

function SmallMatrix({ picture }: { picture: MatrixPicture }) {
  const { rows, columns, values, digits } = picture;
  const scale = onPaper(scaleOf(values.flat(), { fromZero: true }), isDark.value);
  const isMask = values.flat().every((value) => value === 0 || value === 1);
  const hasNumbers = columns.length <= MOST_NUMBERS;
  return (
    <figure class="lesson-figure">
      <figcaption>{said(picture.title)}</figcaption>
      <div class="scroll" tabIndex={0} role="group" aria-label={said(picture.title)}>
        <table class={hasNumbers ? "weights" : "weights dense"}>
          <thead>
            <tr>
              <td />
              {columns.map((column, n) => (
                <th key={n} scope="col">
                  {column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, r) => (
              <tr key={r}>
                <th scope="row">{row}</th>
                {columns.map((column, c) => {
                  const shown = rounded(values[r][c], digits);
                  return (
                    <td key={c} class={isMask ? (values[r][c] ? "on" : "off") : undefined} style={isMask ? {} : cssColour(scale, values[r][c])} title={`${row}, ${column}: ${shown}`}>
                      {hasNumbers ? shown : <span class="unseen">{shown}</span>}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </figure>
  );
}

function Vectors({ picture }: { picture: PointsPicture }) {
  const { names, places, weights } = picture;
  const [width, height, edge] = [360, 250, 36];
  const range = (axis: number) => [Math.min(...places.map((place) => place[axis])), Math.max(...places.map((place) => place[axis]))];
  const [[left, right], [low, high]] = [range(0), range(1)];
  const x = (place: number[]) => edge + ((place[0] - left) / (right - left)) * (width - 2 * edge);
  const y = (place: number[]) => height - edge - ((place[1] - low) / (high - low)) * (height - 2 * edge);
  const mixed = places[places.length - 1];
  return (
    <figure class="lesson-figure">
      <figcaption>{said(picture.title)}</figcaption>
      <svg class="lesson-chart vectors" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={say("learn.vectors", { names: names.slice(0, -1).join(", "), mixed: names[names.length - 1] })}>
        {weights.map((weight, n) => (
          <line key={n} class="share" x1={x(places[n])} y1={y(places[n])} x2={x(mixed)} y2={y(mixed)} stroke-width={0.5 + 10 * weight} />
        ))}
        {places.map((place, n) => (
          <g key={n} class={n === places.length - 1 ? "mixed" : ""}>
            <circle cx={x(place)} cy={y(place)} r={n === places.length - 1 ? 7 : 4.5} />
            <text x={x(place)} y={y(place) - 10} text-anchor="middle">
              {names[n]}
            </text>
          </g>
        ))}
      </svg>
    </figure>
  );
}
