/** What can be done when nothing listens where a configuration points. Pure. */

import type { AdapterLocation } from './adapterLocation';
import { addressOf, labelOf, type RunningSession } from './sessions';

export interface AttachOffer {
  readonly port: number;
  readonly label: string;
  readonly session: RunningSession;
}

const MAX_OFFERS = 3; // as buttons of one dialog

/** The sessions to attach to instead, newest first. `sessions`: oldest first. */
export function attachOffers(sessions: readonly RunningSession[]): AttachOffer[] {
  return sessions
    .slice(-MAX_OFFERS)
    .reverse()
    .map((session) => ({ port: session.port, label: labelOf(session), session }));
}

/** Where a configuration points, as a user would write it; '' if it does not point anywhere yet. */
export function describeLocation(location: AdapterLocation): string {
  if (location.kind === 'server') return addressOf(location);
  return location.kind === 'socket' ? location.path : '';
}
