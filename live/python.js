// The Python of this page, as the page sees it: started with the first run, and anew
// after each stop. Nothing but ending its worker stops a loop on a host that sends no
// headers, so that is what stopping is.

export const LIMIT = 30; // seconds that a cell may run

export class Python {
  #worker = null;
  #job = null; // what is running: { resolve, listen, timer }
  #folder;
  #texts;

  /** `folder` is where the book's live/ lies; its pyodide/ lies beside it. */
  constructor(folder) {
    this.#folder = folder;
  }

  /** Changes when everything that Python knew is gone. */
  life = 0;

  async #start() {
    const { life } = this;
    this.#texts ??= Promise.all(
      ["worker.js", "page.py"].map(async (name) => {
        const answer = await fetch(new URL(name, this.#folder));
        if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
        return answer.text();
      }),
    );
    let texts;
    try {
      texts = await this.#texts;
    } catch (error) {
      this.#texts = undefined; // Another try may fare better.
      throw error;
    }
    if (life !== this.life) return; // Stopped before there was anything to stop.
    const address = URL.createObjectURL(new Blob([texts[0]], { type: "text/javascript" }));
    const worker = new Worker(address);
    URL.revokeObjectURL(address);
    worker.onmessage = ({ data }) => worker === this.#worker && this.#hear(data);
    worker.onerror = (event) => {
      event.preventDefault();
      if (worker === this.#worker) this.end("crash", event.message ?? "");
    };
    const pyodide = new URL("../pyodide/", this.#folder).href;
    worker.postMessage({ start: { pyodide, page: texts[1] } });
    this.#worker = worker;
  }

  /**
   * Run one cell, and nothing else meanwhile. `listen` is told {state} and {shown}.
   * Resolves to {ok, work}, or to {ok: false, ended, what} if Python was ended.
   */
  run(task, listen) {
    if (this.#job) throw new Error("a cell is running");
    return new Promise((resolve) => {
      const job = (this.#job = { resolve, listen, timer: 0 });
      const started = this.#worker ? Promise.resolve() : this.#start();
      started.then(
        () => job === this.#job && this.#worker.postMessage({ run: task }),
        (error) => job === this.#job && this.end("load", error.message),
      );
    });
  }

  #hear({ state, shown, done, failed }) {
    const job = this.#job;
    if (!job) return;
    if (state === "running")
      job.timer = setTimeout(() => this.end("time"), LIMIT * 1000);
    if (state || shown) job.listen({ state, shown });
    if (done) this.#finish(done);
    if (failed) this.end(failed.why ?? (job.timer ? "crash" : "load"), failed.what);
  }

  #finish(result) {
    const job = this.#job;
    this.#job = null;
    if (!job) return;
    clearTimeout(job.timer);
    job.resolve(result);
  }

  /** End Python, whatever it does, for one of: "stop", "time", "crash", "load", "altered". */
  end(why, what = "") {
    this.#worker?.terminate();
    this.#worker = null;
    this.life++;
    this.#finish({ ok: false, ended: why, what });
  }
}
