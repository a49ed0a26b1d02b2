/// <reference lib="dom" />
/** What the scripts of all pages share. */

interface Host<FromPage, Kept> {
  postMessage(message: FromPage): void;
  getState(): Kept | undefined;
  setState(state: Kept): void;
}
declare function acquireVsCodeApi<FromPage, Kept>(): Host<FromPage, Kept>;

interface Ready<Kept> {
  readonly type: 'ready';
  readonly kept: Kept | null;
}

type Show<ToPage> = (message: ToPage) => void;

/** Says that the page is there, and what it has kept over a reload; what it is told goes to `show`. */
export function connect<FromPage, ToPage, Kept>(show: Show<ToPage>): Host<FromPage, Kept> {
  const host = acquireVsCodeApi<FromPage | Ready<Kept>, Kept>();
  window.addEventListener('message', ({ data }: MessageEvent<ToPage>) => {
    show(data);
  });
  host.postMessage({ type: 'ready', kept: host.getState() ?? null });
  return host;
}

export function element(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element ${id}`);
  return found;
}

/** The element of this kind that an event is in. */
export function closest(target: EventTarget | null, selector: string): HTMLElement | null {
  return target instanceof Element ? target.closest<HTMLElement>(selector) : null;
}

/** Shows what has gone wrong; undefined: nothing has. */
export function tellProblem(message: string | undefined): void {
  const problem = element('problem');
  problem.hidden = message === undefined;
  if (message !== undefined) problem.textContent = message;
}
