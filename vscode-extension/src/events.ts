/** Events of VS Code that follow from what one does. */

import type * as vscode from 'vscode';

/** Act, and wait for the event that follows; false if it does not come in time. */
export async function eventAfter<Data>(
  act: () => Thenable<unknown>,
  event: vscode.Event<Data>,
  isIt: (data: Data) => boolean,
  timeoutMs: number,
): Promise<boolean> {
  let finish: (came: boolean) => void = () => undefined;
  const came = new Promise<boolean>((resolve) => (finish = resolve));
  const subscription = event((data) => {
    if (isIt(data)) finish(true);
  });
  let timer: NodeJS.Timeout | undefined;
  try {
    await act();
    timer = setTimeout(finish, timeoutMs, false);
    return await came;
  } finally {
    clearTimeout(timer);
    subscription.dispose();
  }
}
