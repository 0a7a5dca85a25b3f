// The frame around every page: where one is, the language, the colours.
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { lazy, Suspense } from "preact/compat";
import { address } from "./address";
import { Runs } from "./pages/runs";
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

type Theme = "system" | "light" | "dark";
const theme = signal<Theme>((localStorage.getItem("mirada.theme") as Theme | null) ?? "system");
theme.subscribe((chosen) => {
  localStorage.setItem("mirada.theme", chosen);
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
});

export function Studio() {
  const { path, chosen } = address.value;
  const name = path[0] ?? "runs";
  const Page = pages[name];
  return (
    <>
      <a class="skip" href="#page" onClick={(event) => (event.preventDefault(), document.getElementById("page")?.focus())}>
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
      </header>
      <main id="page" tabIndex={-1}>
        {Page ? (
          <Suspense fallback={<p role="status">{say("shell.loading")}</p>}>
            <Page key={name} path={path.slice(1)} chosen={chosen} />
          </Suspense>
        ) : (
          <p role="alert">{say("shell.nothing")}</p>
        )}
      </main>
    </>
  );
}
