// The event stream: kept open, opened again when it breaks, and never silently dead.

const PAUSES = [300, 700, 1500, 3000, 6000, 10_000];

/** The gateway proves every 15 s that the stream works. */
const DEAF_AFTER = 40_000;

/** Browsers allow six connections to one host, so a page that nobody looks at gives its own up. */
const UNWATCHED_AFTER = 60_000;

export class Live {
  /** `heard(event)` for every event, `changed("open" | "lost")` when the connection comes and goes. */
  constructor(heard, changed) {
    this.heard = heard;
    this.changed = changed;
    this.failures = 0;
    addEventListener("online", () => this.hurry());
    document.addEventListener("visibilitychange", () => {
      clearTimeout(this.unwatched);
      if (document.hidden) this.unwatched = setTimeout(() => this.#rest(), UNWATCHED_AFTER);
      else this.hurry();
    });
  }

  open() {
    this.close();
    const source = new EventSource("/api/events");
    this.source = source;
    source.onmessage = ({ data }) => {
      if (this.source !== source) return;
      this.#listen();
      const event = JSON.parse(data);
      if (event.kind === "hello") {
        this.failures = 0;
        this.changed("open");
      }
      this.heard(event);
    };
    source.onerror = () => {
      if (this.source === source) this.#lost();
    };
    this.#listen();
  }

  close() {
    this.source?.close();
    this.source = undefined;
    clearTimeout(this.deaf);
    clearTimeout(this.again);
    this.again = undefined;
    this.resting = false;
  }

  /** Opens the stream at once instead of after a pause. */
  hurry() {
    if (this.again !== undefined || this.resting) this.open();
  }

  #rest() {
    if (this.source === undefined) return;
    this.close();
    this.resting = true;
  }

  #listen() {
    clearTimeout(this.deaf);
    this.deaf = setTimeout(() => this.#lost(), DEAF_AFTER);
  }

  #lost() {
    this.close();
    this.changed("lost");
    const pause = PAUSES[Math.min(this.failures, PAUSES.length - 1)];
    this.failures += 1;
    // Many pages that lost one gateway should not all come back in the same instant.
    this.again = setTimeout(() => this.open(), pause * (0.75 + Math.random() / 2));
  }
}
