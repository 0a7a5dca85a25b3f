// The frame around every page: where one is, the language, the colours.
import type { ComponentType } from "preact";
import { lazy, Suspense } from "preact/compat";
import { useEffect, useRef } from "preact/hooks";
import { address } from "./address";
import { Runs } from "./pages/runs";
import { Guarded } from "./parts/guarded";
import { theme, type Theme } from "./theme";
import { language, say, type Language } from "./words";

export interface PageProps {
  path: string[]; // what follows the page's name in the address
  chosen: Record<string, string>;
}

const pages: Record<string, ComponentType<PageProps>> = {
  runs: Runs,
  look: lazy(() => import("./pages/look").then((page) => page.Look)),
  read: lazy(() => import("./pages/read").then((page) => page.Read)),
  map: lazy(() => import("./pages/map").then((page) => page.MapPage)),
  learn: lazy(() => import("./pages/learn").then((page) => page.Learn)),
};

export function Studio() {
  const { path, chosen } = address.value;
  const name = path[0] ?? "runs";
  const Page = Object.hasOwn(pages, name) ? pages[name] : undefined;
  useArrival(path.join("/"), [path[1], Page ? say(`shell.${name}`) : "", "Mirada Studio"].filter(Boolean).join(" · "));
  return (
    <>
      <a class="skip" href="#page" onClick={(event) => (event.preventDefault(), toPage())}>
        {say("shell.skip")}
      </a>
      <header class="bar">
        <a class="brand" href="#/runs">
          Mirada
        </a>
        <nav aria-label="Mirada">
          <ul>
            {Object.keys(pages).map((page) => (
              <li key={page}>
                <a href={`#/${page}`} aria-current={page === name ? "page" : undefined}>
                  {say(`shell.${page}`)}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <Preferences />
      </header>
      <main id="page" tabIndex={-1}>
        {Page ? (
          <Guarded key={name}>
            <Suspense fallback={<p role="status">{say("shell.loading")}</p>}>
              <Page path={path.slice(1)} chosen={chosen} />
            </Suspense>
          </Guarded>
        ) : (
          <h1>{say("shell.nothing")}</h1>
        )}
      </main>
    </>
  );
}

function Preferences() {
  return (
    <div class="preferences">
      <select
        aria-label={say("shell.language")}
        value={language.value}
        onChange={(event) => (language.value = event.currentTarget.value as Language)}
      >
        <option value="en">English</option>
        <option value="es">Español</option>
      </select>
      <select
        aria-label={say("shell.theme")}
        value={theme.value}
        onChange={(event) => (theme.value = event.currentTarget.value as Theme)}
      >
        {(["system", "light", "dark"] as const).map((kind) => (
          <option key={kind} value={kind}>
            {say(`shell.theme.${kind}`)}
          </option>
        ))}
      </select>
    </div>
  );
}

function toPage(): void {
  document.getElementById("page")?.focus();
}

// A new page has its name in the title and the focus in it, as if the browser had loaded it; choices on a page move nothing.
function useArrival(place: string, title: string): void {
  const before = useRef(place);
  useEffect(() => {
    document.title = title;
  }, [title]);
  useEffect(() => {
    if (before.current === place) return;
    before.current = place;
    scrollTo(0, 0);
    toPage();
  }, [place]);
}
