"use strict";
// The page can be read without this script, which sorts the table of kernels and opens what a link leads to.
(() => {
  const open = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") target.open = true;
  };
  addEventListener("hashchange", open);
  open();
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => (one.open = true)));

  const isNumber = (head) => head.classList.contains("number") || head.classList.contains("wide");
  const numberIn = (cell) => {
    const number = parseFloat((cell.dataset.value ?? cell.textContent).trim().replaceAll(",", ""));
    return Number.isNaN(number) ? -Infinity : number;
  };

  const table = document.getElementById("kernel-table");
  if (!table) return;
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows];
      const compare = isNumber(head)
        ? (a, b) => Math.sign(numberIn(a.cells[column]) - numberIn(b.cells[column])) || 0
        : (a, b) => a.cells[column].textContent.localeCompare(b.cells[column].textContent);
      rows.sort((a, b) => (down ? -1 : 1) * compare(a, b));
      table.tBodies[0].append(...rows);
    });
  });
})();
