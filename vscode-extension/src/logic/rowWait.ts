/** Waits for a row that VS Code has forgotten while it reads a view anew. Pure except for its timer. */

const LOOK_INTERVAL_MS = 25;
/** A view that is read as slowly as this will not have the row again. */
const TIMEOUT_MS = 2_000;

/**
 * The first of the selected rows, once there is one.
 *
 * From a refresh until all rows have been read again, VS Code knows none of them: the command of a row that is clicked
 * meanwhile, if it has arguments, is "not found". So such commands have none, and look for the selected row instead.
 */
export async function selectedRow<Row>(selection: () => readonly Row[]): Promise<Row | undefined> {
  const deadline = Date.now() + TIMEOUT_MS;
  for (;;) {
    const [row] = selection();
    if (row !== undefined || Date.now() >= deadline) return row;
    await new Promise((resolve) => setTimeout(resolve, LOOK_INTERVAL_MS));
  }
}
