// Light, dark, or as the system has it.
import { computed, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const kept = localStorage.getItem("mirada.theme");
export const theme = signal<Theme>(kept === "light" || kept === "dark" ? kept : "system");

theme.subscribe((chosen) => {
  localStorage.setItem("mirada.theme", chosen);
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
});

const system = matchMedia("(prefers-color-scheme: dark)");
const systemIsDark = signal(system.matches);
system.addEventListener("change", () => (systemIsDark.value = system.matches));

// For what is drawn on a canvas and has to be drawn anew.
export const isDark = computed(() => (theme.value === "system" ? systemIsDark.value : theme.value === "dark"));
