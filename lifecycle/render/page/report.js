// Sorts and filters the tables. Without it they stand there whole, in the order of the report.
(() => {
  "use strict";
  const AT_ONCE = 200; // rows that are laid out at a time
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

  class Table {
    constructor(frame, number) {
      this.frame = frame;
      this.box = frame.querySelector(".scroll");
      this.body = frame.querySelector("tbody");
      this.heads = [...frame.querySelectorAll("thead th")];
      this.rows = [...frame.querySelectorAll("tbody > tr")];
      this.keys = new Map();
      this.words = "";
      this.column = -1;
      this.falling = false;
      frame.querySelector(".rest")?.remove();
      this.heads.forEach((head, at) => this.sortable(head, at));
      this.said = make("p", { role: "status", "aria-live": "polite" });
      this.tools(number);
      this.show();
    }

    sortable(head, at) {
      const button = make("button", { type: "button" }, ...head.childNodes);
      button.addEventListener("click", () => this.sort(at));
      head.append(button);
      head.setAttribute("aria-sort", "none");
    }

    tools(number) {
      const title = this.frame.querySelector("caption").textContent;
      const bar = make("div", { class: "tools" });
      if (this.frame.classList.contains("filtered")) {
        const input = make("input", { type: "search", id: `filter.${number}`, autocomplete: "off", spellcheck: "false" });
        const whose = make("span", { class: "visually-hidden" }, ` ${title}`);
        input.addEventListener("input", () => this.filter(input.value));
        bar.append(make("label", { for: input.id }, make("span", {}, "Filter", whose), input));
      } else {
        bar.classList.add("visually-hidden");
      }
      bar.append(this.said);
      this.frame.prepend(bar);
      this.part = make("span", {});
      const all = make("button", { type: "button" }, "Show all");
      all.addEventListener("click", () => this.lay(this.found.length));
      this.more = make("div", { class: "more" }, this.part, all);
      this.frame.append(this.more);
      this.box.addEventListener("scroll", () => this.reached(), { passive: true });
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
      this.words = text.toLowerCase().trim();
      this.show();
    }

    // A row answers to a filter when it has all of its words, anywhere.
    show() {
      const order = this.order();
      if (this.words) {
        this.texts ??= this.rows.map(textOf);
        const words = this.words.split(/\s+/);
        this.found = order.filter((at) => words.every((word) => this.texts[at].includes(word)));
      } else {
        this.found = order;
      }
      this.laid = 0;
      this.body.replaceChildren();
      this.lay(AT_ONCE);
      this.box.scrollTop = 0;
      this.tell();
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

    // The next rows, as far as `until`.
    lay(until) {
      const next = this.found.slice(this.laid, until);
      const rows = document.createDocumentFragment();
      for (const at of next) rows.append(this.rows[at]);
      if (!this.found.length) {
        rows.append(make("tr", {}, make("td", { colspan: this.heads.length, class: "unknown" }, "No row has that.")));
      }
      this.body.append(rows);
      this.laid += next.length;
      this.more.hidden = this.laid >= this.found.length;
      this.part.textContent = `The first ${count.format(this.laid)} of ${count.format(this.found.length)} rows; scroll for the next.`;
    }

    reached() {
      if (this.laid < this.found.length && this.box.scrollTop + 2 * this.box.clientHeight > this.box.scrollHeight) {
        this.lay(this.laid + AT_ONCE);
      }
    }

    tell() {
      const [all, some] = [count.format(this.rows.length), count.format(this.found.length)];
      const rows = this.rows.length === 1 ? "row" : "rows";
      const head = this.heads[this.column];
      const sorted = head ? `, by ${head.textContent} ${this.falling ? "downwards" : "upwards"}` : "";
      this.said.textContent = `${this.words ? `${some} of ` : ""}${all} ${rows}${sorted}`;
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    try {
      const tables = Array.from(document.querySelectorAll(".table"), (frame, at) => new Table(frame, at + 1));
      // On paper there is no scrolling.
      addEventListener("beforeprint", () => tables.forEach((table) => table.lay(table.found.length)));
    } finally {
      root.classList.remove("js"); // nothing waits any more that this did not take into its hands
    }
  });
})();
