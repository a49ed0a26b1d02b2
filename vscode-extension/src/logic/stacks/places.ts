/** Where a frame is. Pure. */

/** Whether it is the path of a file, and not `<frozen runpy>` or a relative name. */
export function isFile(path: string): boolean {
  return /^(?:\/|[A-Za-z]:[\\/]|\\\\)/.test(path);
}
