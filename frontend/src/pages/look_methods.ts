// Names of methods in the language of the page; as the server has them where there is no translation.
import { language, say } from "../words";

interface Named {
  title: string;
  is_not: string;
}

export function said(map: Named & ({ method: string } | { name: string })): Named {
  const name = "method" in map ? map.method : map.name;
  if (language.value === "en") return map;
  const [title, isNot] = [say(`method.${name}`), say(`method.${name}.not`)];
  return { title: title.startsWith("method.") ? map.title : title, is_not: isNot.startsWith("method.") ? map.is_not : isNot };
}
