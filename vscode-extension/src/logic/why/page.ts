/** The page that says why a job does not move. All that comes from ranks is escaped. Pure. */

import { escaped } from '../compare/drawing';
import { page, type Shell } from '../page';
import { fileOf, isFile } from '../ranks/labels';
import { whichRanks } from '../ranks/sets';
import type { Frame } from '../stacks/tree';
import { FINE, type Suspect, type WhyBody } from './answer';

/** The commands that the page's links run: nothing else on it does anything. */
export interface Links {
  readonly again: string;
  readonly copy: string;
  readonly open: string;
}

const MAX_FRAMES = 30; // of a suspect

export function whyPage(body: WhyBody, time: string, links: Links, { source, style }: Pick<Shell, 'source' | 'style'>): string {
  const { verdict, sentence, suspects, evidence, next } = body;
  const content = `<p id="verdict" class="${FINE.has(verdict) ? 'fine' : 'found'}">${escaped(verdict)}</p>
<h1 id="sentence">${escaped(sentence)}</h1>
${evidence.length === 0 ? '' : `<ul id="evidence">${evidence.map((line) => `<li>${escaped(line)}</li>`).join('')}</ul>`}
${next === '' ? '' : `<p id="next">Try: <code>${escaped(next)}</code> ${link(links.copy, [], 'Copy')}</p>`}
${suspects.map((suspect, index) => section(suspect, index, links.open)).join('\n')}
<p id="time">As of ${escaped(time)}. No rank was stopped for it. ${link(links.again, [], 'Ask Again')}</p>`;
  return page(`style-src ${source}`, style, 'Why is my job not moving?', content);
}

/** VS Code runs the command of such a link, with these arguments. */
function link(command: string, args: readonly number[], text: string, spoken = ''): string {
  const query = args.length === 0 ? '' : `?${encodeURIComponent(JSON.stringify(args))}`;
  const label = spoken === '' ? '' : ` aria-label="${escaped(spoken)}"`;
  return `<a href="command:${escaped(command)}${query}"${label}>${escaped(text)}</a>`;
}

function section({ ranks, stack, waitingFor }: Suspect, index: number, open: string): string {
  const waits = waitingFor === '' ? '' : ` <span class="waits">in ${escaped(waitingFor)}</span>`;
  const frames = stack.slice(0, MAX_FRAMES).map((frame, depth) => item(frame, [index, depth], open));
  const rest = stack.length - frames.length;
  const more = rest > 0 ? `<li class="library">${rest} more</li>` : '';
  return `<section class="suspect"><h2>${escaped(whichRanks(ranks))}${waits}</h2><ol>${frames.join('')}${more}</ol></section>`;
}

function item(frame: Frame, at: readonly number[], open: string): string {
  const place = `${fileOf(frame.path)}:${frame.line}`;
  const spoken = `${frame.name}, ${place}. Go there`;
  const name = isFile(frame.path) ? link(open, at, frame.name, spoken) : escaped(frame.name);
  return (
    `<li${frame.library ? ' class="library"' : ''}>${name} ` +
    `<span class="place" title="${escaped(frame.path)}">${escaped(place)}</span></li>`
  );
}
