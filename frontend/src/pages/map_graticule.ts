// Lines of longitude and latitude with their degrees, in place of a base map: nothing comes from outside.
import L from "leaflet";
import { degrees, digitsOf, linesBetween, stepOf, type Axis } from "./map_places";

const MOST_LINES = 7;
const MOST_LATITUDE = 85;

export class Graticule extends L.LayerGroup {
  private own: L.Map | null = null;

  override onAdd(map: L.Map): this {
    super.onAdd(map);
    this.own = map;
    map.on("moveend resize", this.draw, this);
    this.draw();
    return this;
  }

  override onRemove(map: L.Map): this {
    map.off("moveend resize", this.draw, this);
    this.own = null;
    return super.onRemove(map);
  }

  private draw(): void {
    const map = this.own;
    if (!map || !map.getSize().x) return;
    this.clearLayers();
    const seen = map.getBounds();
    const [south, north] = [Math.max(seen.getSouth(), -MOST_LATITUDE), Math.min(seen.getNorth(), MOST_LATITUDE)];
    const [west, east] = [seen.getWest(), seen.getEast()];
    const size = map.getSize();
    const step = stepOf(east - west, Math.min(MOST_LINES, Math.max(2, size.x / 110)));
    const digits = digitsOf(step);
    for (const longitude of linesBetween(west, east, step)) {
      this.line([south, longitude], [north, longitude]);
      this.label(map.latLngToContainerPoint([0, longitude]).x, size.y, longitude, "longitude", digits);
    }
    for (const latitude of linesBetween(south, north, step)) {
      this.line([latitude, west], [latitude, east]);
      this.label(size.x, map.latLngToContainerPoint([latitude, west]).y, latitude, "latitude", digits);
    }
  }

  private line(from: L.LatLngTuple, to: L.LatLngTuple): void {
    this.addLayer(L.polyline([from, to], { interactive: false, className: "graticule-line", weight: 1 }));
  }

  private label(x: number, y: number, value: number, axis: Axis, digits: number): void {
    const map = this.own!;
    const text = document.createElement("span");
    text.textContent = degrees(value, axis, digits);
    const icon = L.divIcon({ html: text, className: `graticule-label ${axis}`, iconSize: [0, 0] });
    this.addLayer(L.marker(map.containerPointToLatLng([x, y]), { icon, interactive: false, keyboard: false }));
  }
}
