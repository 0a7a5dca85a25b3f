// The map itself: our own tiles by Leaflet, a graticule, a scale, the chosen place and the plots it rests on.
import L from "leaflet";
import "leaflet/dist/leaflet.css";
import { useEffect, useRef } from "preact/hooks";
import type { MapAnswer, MapFile } from "../api";
import { percent } from "../parts/controls";
import { number, say } from "../words";
import { Graticule } from "./map_graticule";
import { distance, near, type Place } from "./map_places";

const MAX_ZOOM = 22;
const LARGEST = 13; // pixels of radius of the strongest plot

export interface View extends Place {
  zoom: number;
}

interface Props {
  map: MapFile;
  tiles: string; // address with {z}, {x} and {y}
  opacity: number;
  view: View | null; // null: all of the map
  at: Place | null;
  answer: MapAnswer | null;
  move: (view: View) => void;
  ask: (place: Place) => void;
  fail: () => void; // a tile did not come
}

export function MapView(props: Props) {
  const box = useRef<HTMLDivElement>(null);
  const opened = useRef<L.Map | null>(null);
  const tiles = useRef<L.TileLayer | null>(null);
  const drawn = useRef<L.LayerGroup | null>(null);
  const isShowing = useRef(false); // what the page itself does is no move of the reader's, and not for the address
  const latest = useRef(props);
  latest.current = props;
  const { view, at, answer } = props;

  useEffect(() => {
    const map = L.map(box.current!, { attributionControl: false, zoomControl: false, maxZoom: MAX_ZOOM, trackResize: false });
    L.control.zoom({ zoomInTitle: say("map.zoomIn"), zoomOutTitle: say("map.zoomOut") }).addTo(map);
    L.control.scale({ imperial: false, position: "topright" }).addTo(map);
    isShowing.current = true;
    show(map, latest.current.view, latest.current.map);
    isShowing.current = false;
    new Graticule().addTo(map);
    drawn.current = L.layerGroup().addTo(map);
    map.on("moveend", () => isShowing.current || latest.current.move(viewOf(map)));
    map.on("click", ({ latlng }) => latest.current.ask({ latitude: latlng.lat, longitude: latlng.lng }));
    const size = new ResizeObserver(([{ contentRect }]) => {
      if (!contentRect.width || !contentRect.height) return; // there is no zoom at which a map fits into nothing
      isShowing.current = true;
      map.invalidateSize({ pan: false });
      if (!latest.current.view) show(map, null, latest.current.map);
      isShowing.current = false;
    });
    size.observe(box.current!);
    opened.current = map;
    return () => {
      size.disconnect();
      opened.current = null;
      map.remove();
    };
  }, []);

  useEffect(() => {
    const [[south, west], [north, east]] = props.map.bounds;
    const layer = L.tileLayer(props.tiles, { bounds: [[south, west], [north, east]], maxZoom: MAX_ZOOM, opacity: latest.current.opacity, className: "map-tiles" });
    layer.on("tileerror", () => latest.current.fail());
    layer.addTo(opened.current!);
    tiles.current = layer;
    return () => void layer.remove();
  }, [props.tiles]);

  useEffect(() => void tiles.current?.setOpacity(props.opacity), [props.opacity]);

  useEffect(() => {
    const map = opened.current;
    if (!map || (view && isSame(view, viewOf(map)))) return;
    isShowing.current = true;
    show(map, view, props.map);
    isShowing.current = false;
  }, [view?.latitude, view?.longitude, view?.zoom]);

  useEffect(() => {
    drawn.current?.clearLayers();
    if (at) for (const layer of marks(at, answer)) drawn.current?.addLayer(layer);
  }, [at?.latitude, at?.longitude, answer]);

  const press = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.target !== box.current || !opened.current) return;
    const { lat, lng } = opened.current.getCenter();
    props.ask({ latitude: lat, longitude: lng });
    event.preventDefault();
  };
  return <div ref={box} class="map-view" tabIndex={0} role="application" aria-label={say("map.label", { target: props.map.target })} onKeyDown={press} />;
}

function show(map: L.Map, view: View | null, { bounds }: MapFile): void {
  if (view) map.setView([view.latitude, view.longitude], view.zoom, { animate: false });
  else if (isSeen(map)) map.fitBounds(bounds, { animate: false });
  else map.setView(L.latLngBounds(bounds).getCenter(), 0, { animate: false });
}

const isSeen = (map: L.Map): boolean => map.getSize().x > 0 && map.getSize().y > 0;

const viewOf = (map: L.Map): View => ({ latitude: map.getCenter().lat, longitude: map.getCenter().lng, zoom: map.getZoom() });

// An address has fewer digits than a map.
const isSame = (one: View, other: View): boolean =>
  one.zoom === other.zoom && Math.abs(one.latitude - other.latitude) < 2e-5 && Math.abs(one.longitude - other.longitude) < 2e-5;

function marks(at: Place, answer: MapAnswer | null): L.Layer[] {
  const place: L.LatLngTuple = answer ? [answer.latitude, near(answer.longitude, at.longitude)] : [at.latitude, at.longitude];
  const most = answer?.plots[0]?.weight ?? 1;
  const plots = [...(answer?.plots ?? [])].reverse().flatMap((plot) => {
    const there: L.LatLngTuple = [plot.latitude, near(plot.longitude, place[1])];
    const share = plot.weight / most;
    const words = { name: plot.name, weight: percent(plot.weight), value: number(plot.value), km: distance(plot.km) };
    const told = document.createElement("span"); // names come from people's files
    told.textContent = say("map.plots.circle", words);
    return [
      L.polyline([place, there], { interactive: false, className: "plot-line casing", weight: 3 + 2 * share, opacity: 0.7 }),
      L.polyline([place, there], { interactive: false, className: "plot-line", weight: 1 + 2 * share }),
      L.circleMarker(there, { className: "plot-circle", radius: Math.max(3, LARGEST * Math.sqrt(share)), bubblingMouseEvents: true }).bindTooltip(told),
    ];
  });
  const ring = (className: string) => L.circleMarker(place, { className, radius: 7, interactive: false });
  return [...plots, ring("place-halo"), ring("place-ring")];
}
