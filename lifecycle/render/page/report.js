// Sorts, filters and pages the tables. Without it they stand there whole, in the order of the report.
(() => {
  "use strict";
  const root = document.documentElement;
  const count = new Intl.NumberFormat("en");
  root.classList.add("js");

  // Numbers by size; words without regard to case, and numbers in them by size, too: step-90 before step-100.
  const keyOf = (cell) => {
    const raw = cell.getAttribute("data-value");
    if (raw !== null) return raw === "" ? null : Number(raw);
    if (cell.className === "unknown") return null;
    return cell.textContent.toLowerCase().replace(/\d+/g, (digits) => digits.padStart(20, "0"));
  };
  const textOf = (row) => Array.from(row.cells, (cell) => cell.textContent).join("\n").toLowerCase();
  const make = (name, traits, ...inner) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(traits)) made.setAttribute(key, value);
    made.append(...inner);
    return made;
  };
  const button = (does, ...inner) => {
    const made = make("button", { type: "button" }, ...inner);
    made.addEventListener("click", does);
    return made;
  };

  class Table {
    constructor(frame, number) {
      this.frame = frame;
      this.box = frame.querySelector(".scroll");
      this.body = frame.querySelector("tbody");
      this.heads = [...frame.querySelectorAll("thead th")];
      this.rows = [...frame.querySelectorAll("tbody > tr")];
      this.keys = new Map();
      this.words = [];
      this.column = -1;
      this.falling = false;
      // A browser takes its time to lay out thousands of rows: those that the page has apart wait for their turn.
      const rest = frame.querySelector(".rest");
      this.size = rest ? this.body.rows.length : Infinity;
      rest?.remove();
      this.heads.forEach((head, at) => {
        head.append(button(() => this.sort(at), ...head.childNodes));
        head.setAttribute("aria-sort", "none");
      });
      this.addTools(number);
      if (rest) this.addPager();
      this.show();
    }

    addTools(number) {
      const bar = make("div", { class: "tools" });
      if (this.frame.classList.contains("filtered")) {
        const input = make("input", { type: "search", id: `filter.${number}`, autocomplete: "off", spellcheck: "false" });
        const whose = make("span", { class: "visually-hidden" }, ` ${this.frame.querySelector("caption").textContent}`);
        input.addEventListener("input", () => this.filter(input.value));
        bar.append(make("label", { for: input.id }, make("span", {}, "Filter", whose), input));
      } else {
        bar.classList.add("visually-hidden");
      }
      this.said = make("p", { role: "status", "aria-live": "polite" });
      bar.append(this.said);
      this.frame.prepend(bar);
    }

    addPager() {
      this.where = make("span", { role: "status", "aria-live": "polite" });
      this.back = button(() => this.turn(-1), "Previous");
      this.next = button(() => this.turn(1), "Next");
      this.pager = make("div", { class: "pager" }, this.where, this.back, this.next);
      this.frame.append(this.pager);
    }

    // Upwards, downwards, and back to the order of the report, which has the most important first.
    sort(at) {
      if (this.column !== at) [this.column, this.falling] = [at, false];
      else if (!this.falling) this.falling = true;
      else this.column = -1;
      this.heads.forEach((head, other) => {
        const way = other !== this.column ? "none" : this.falling ? "descending" : "ascending";
        head.setAttribute("aria-sort", way);
      });
      this.show();
    }

    filter(text) {
      this.words = text.toLowerCase().split(/\s+/).filter(Boolean);
      this.show();
    }

    turn(by) {
      this.lay(this.first + by * this.size, this.size);
      this.box.scrollTop = 0;
    }

    // A row answers to a filter when it has all of its words, anywhere.
    show() {
      const order = this.order();
      if (this.words.length) this.texts ??= this.rows.map(textOf);
      this.found = order.filter((at) => this.words.every((word) => this.texts[at].includes(word)));
      this.lay(0, this.size);
      this.box.scrollTop = 0;
      const [all, some] = [count.format(this.rows.length), count.format(this.found.length)];
      const head = this.heads[this.column];
      const sorted = head ? `, by ${head.textContent}, ${this.falling ? "downwards" : "upwards"}` : "";
      const narrowed = this.words.length > 0;
      const of = narrowed ? `${some} of ` : "";
      this.frame.classList.toggle("narrowed", narrowed); // on paper it is said, too
      this.said.textContent = `${of}${all} ${this.rows.length === 1 ? "row" : "rows"}${sorted}`;
    }

    order() {
      const order = this.rows.map((_, at) => at);
      if (this.column < 0) return order;
      if (!this.keys.has(this.column)) this.keys.set(this.column, this.rows.map((row) => keyOf(row.cells[this.column])));
      const keys = this.keys.get(this.column);
      const way = this.falling ? -1 : 1;
      return order.sort((a, b) => {
        const [one, other] = [keys[a], keys[b]];
        if (one === null || other === null) return (one === null) - (other === null) || a - b; // not known: last, always
        return one < other ? -way : one > other ? way : a - b;
      });
    }

    lay(first, many) {
      this.first = first;
      const next = this.found.slice(first, first + many);
      const rows = document.createDocumentFragment();
      for (const at of next) rows.append(this.rows[at]);
      if (!next.length) {
        rows.append(make("tr", {}, make("td", { colspan: this.heads.length, class: "unknown" }, "No row has that.")));
      }
      this.body.replaceChildren(rows);
      if (!this.pager) return;
      const [all, last] = [this.found.length, first + next.length];
      this.pager.hidden = all <= this.size;
      this.where.textContent = `Rows ${count.format(first + 1)} to ${count.format(last)} of ${count.format(all)}`;
      this.back.disabled = first === 0;
      this.next.disabled = last === all;
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    try {
      const tables = Array.from(document.querySelectorAll(".table"), (frame, at) => new Table(frame, at + 1));
      // Paper has no pages to turn to.
      addEventListener("beforeprint", () => tables.forEach((table) => table.lay(0, Infinity)));
      addEventListener("afterprint", () => tables.forEach((table) => table.lay(0, table.size)));
    } finally {
      root.classList.remove("js"); // whatever still waits was not taken care of, and is shown
    }
  });
})();
