/** Whether a debug session can be ended and started again without harm. Pure. */

import type { Attributes } from './adapterLocation';

/** One that has launched its job would end it. */
export function mayAttachAgain(configuration: Attributes): boolean {
  return configuration['request'] === 'attach';
}
