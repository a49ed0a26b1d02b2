/** What can be done when nothing listens where a configuration points. Pure. */

import type { AdapterLocation } from './adapterLocation';
import { addressOf, type RunningSession } from './sessions';

const MAX_OFFERS = 3; // as buttons of one dialog

/** The sessions to attach to instead, newest first. `sessions`: oldest first. */
export function attachOffers(sessions: readonly RunningSession[]): RunningSession[] {
  return sessions.slice(-MAX_OFFERS).reverse();
}

/** Where a configuration points, as a user would write it; '' if it does not point anywhere yet. */
export function describeLocation(location: AdapterLocation): string {
  if (location.kind === 'server') return addressOf(location);
  return location.kind === 'socket' ? location.path : '';
}
