// Inputs to choose from, and the page of the one that is chosen.

let page = null;

function item_list() {
  if (facts.items.length === 1) return;
  const buttons = facts.items.map((item, n) => make("button", { type: "button", click: () => change({ item: n + 1 }) },
    ...(item.picture ? [make("img", { src: item.picture, alt: "", class: is_pixel_art(item) ? "pixelated" : null })] : []), make("span", {}, item.name)));
  element("items").replaceChildren(...buttons);
}

function render() {
  if (!page || page.number !== state.item) {
    const item = facts.items[state.item - 1], made = item.kind === "image" ? image_page(item) : text_page(item);
    page = { number: state.item, render: () => {} };
    element("item").replaceChildren(made.node);
    [...element("items").children].forEach((button, n) => button.setAttribute("aria-pressed", String(n + 1 === state.item)));
    const own = page;
    made.load().then(() => {
      own.render = made.render;
      if (page === own) own.render();
      document.body.dataset.ready = String(own.number);
    });
    return;
  }
  page.render();
}

function recall() {
  remember();
  schedule();
}

window.addEventListener("hashchange", recall);
window.addEventListener("popstate", recall);
window.addEventListener("resize", schedule);
dark.addEventListener("change", schedule);
item_list();
recall();
