// What a page of the book does by itself: copy buttons on code, and keyboard
// access to what scrolls sideways. Words come from the page, in its language.
const { copy, copied, copyFailed } = document.body.dataset;

for (const block of document.querySelectorAll(".cell_input div.highlight, div[class*=highlight-] > div.highlight")) {
  if (block.closest(".cell_output")) continue;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "book-copy";
  button.textContent = copy;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(block.querySelector("pre").textContent);
      button.textContent = copied;
    } catch {
      button.textContent = copyFailed;
    }
    button.dataset.done = "";
    setTimeout(() => {
      button.textContent = copy;
      delete button.dataset.done;
    }, 2000);
  });
  block.append(button);
}

const sideways = () => {
  for (const element of document.querySelectorAll("div.math, .bd-article pre, .pst-scrollable-table-container")) {
    if (element.scrollWidth > element.clientWidth) element.tabIndex = 0;
    else element.removeAttribute("tabindex");
  }
};
addEventListener("load", sideways);
addEventListener("resize", sideways);
