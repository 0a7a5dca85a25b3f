import type { Words } from ".";

export const shell: Words = {
  "shell.runs": { en: "Runs", es: "Entrenamientos" },
  "shell.look": { en: "Look", es: "Mirar" },
  "shell.read": { en: "Read", es: "Leer" },
  "shell.map": { en: "Map", es: "Mapa" },
  "shell.learn": { en: "Learn", es: "Aprender" },
  "shell.skip": { en: "Skip to the page", es: "Saltar al contenido" },
  "shell.language": { en: "Language", es: "Idioma" },
  "shell.theme": { en: "Colours", es: "Colores" },
  "shell.theme.system": { en: "System", es: "Sistema" },
  "shell.theme.light": { en: "Light", es: "Claro" },
  "shell.theme.dark": { en: "Dark", es: "Oscuro" },
  "shell.loading": { en: "One moment …", es: "Un momento …" },
  "shell.again": { en: "Try again", es: "Intentar de nuevo" },
  "shell.broken": {
    en: "This page has failed, which is a mistake of the studio: {error}",
    es: "Esta página ha fallado por un error del estudio: {error}",
  },
  "shell.nothing": { en: "There is no such page.", es: "Esta página no existe." },
};
