/** The arguments that VS Code passes to commands in the menus of its views and of ours. Pure. */

/** DAP's id of the row, and the session it is in. */
export interface StackItem {
  readonly session: string | undefined;
  readonly threadId: number | undefined;
}

export interface VariableItem {
  readonly session: string | undefined;
  readonly name: string;
  readonly expression: string;
}

type Bag = Readonly<Record<string, unknown>>;

function isBag(value: unknown): value is Bag {
  return typeof value === 'object' && value !== null;
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A row's or frame's own id in VS Code ends with the thread's: `thread:SESSION:7`. */
export function stackItem(args: readonly unknown[]): StackItem {
  const bag = args.find((arg): arg is Bag => isBag(arg) && 'sessionId' in arg);
  const told = text(bag?.['threadId']);
  const number = told === undefined ? args.find((arg) => typeof arg === 'number') : Number(told.split(':').at(-1));
  return {
    session: text(bag?.['sessionId']),
    threadId: Number.isInteger(number) ? Number(number) : undefined,
  };
}

export function variableItem(args: readonly unknown[]): VariableItem | undefined {
  const bag = args.find((arg): arg is Bag => isBag(arg) && isBag(arg['variable']));
  const variable = bag?.['variable'];
  if (!isBag(variable)) return undefined;
  const name = text(variable['name']);
  const expression = text(variable['evaluateName']) ?? name;
  if (name === undefined || expression === undefined) return undefined;
  return { session: text(bag?.['sessionId']), name, expression };
}

/**
 * Whether a row of our view was clicked that is being read anew at that moment: VS Code passes nothing for it
 * then. From a key nothing is passed either, but no second argument, which is of the selected rows.
 */
export function rowHasGone(args: readonly unknown[]): boolean {
  return args.length > 1 && (args[0] === undefined || args[0] === null);
}
