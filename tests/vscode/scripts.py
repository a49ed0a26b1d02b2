"""What is run in the page of VS Code, to look and to click: each at one moment."""

from __future__ import annotations

from typing import Final

# Put there at once: keys go to what has the focus, an editor perhaps by the time they are pressed.
PUT: Final = """text => {
    const box = document.querySelector('.quick-input-widget input');
    if (!box || !box.getClientRects().length) return false;
    box.value = text;
    box.dispatchEvent(new InputEvent('input', {bubbles: true}));
    return true;
}"""
# Seen and clicked at once: a list that is filled anew has another row there a moment later.
TAKE: Final = """([text, words]) => {
    const box = document.querySelector('.quick-input-widget input');
    if (!box || !box.getClientRects().length || box.value !== text) return false;
    const row = [...document.querySelectorAll('.quick-input-list .monaco-list-row')]
        .sort((a, b) => parseInt(a.style.top) - parseInt(b.style.top))
        .find(e => e.innerText.replace(/\\s+/g, ' ').toLowerCase().includes(words.toLowerCase()));
    row?.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true, view: window}));
    return Boolean(row);
}"""
# The active file, where its cursor is, and what else has the keys.
KEYS: Final = """() => {
    const group = document.querySelector('.editor-group-container.active');
    const picker = document.querySelector('.quick-input-widget');
    const inside = group?.querySelector('.monaco-editor.focused');
    const other = picker?.getClientRects().length ? picker : inside ? null : document.activeElement;
    return [
        group?.querySelector('.tab.active')?.getAttribute('data-resource-name') ?? '',
        document.getElementById('status.editor.selection')?.innerText.trim() ?? '',
        other ? other.getAttribute('aria-label') || other.className || other.tagName : '',
    ];
}"""
MARKED: Final = """line => {
    const editor = document.querySelector('.editor-group-container.active .monaco-editor');
    const drawn = [...editor?.querySelectorAll('.margin-view-overlays > div') ?? []]
        .find(e => e.querySelector('.line-numbers')?.innerText === String(line));
    if (!drawn) return null;
    const marks = '.glyph-margin-widgets .codicon[class*=codicon-debug-breakpoint]';
    const top = parseInt(drawn.style.top);
    return [...editor.querySelectorAll(marks)].some(e => parseInt(e.style.top) === top);
}"""
# Where breakpoints are drawn, at the height of this line.
GUTTER: Final = """line => {
    const editor = document.querySelector('.editor-group-container.active .monaco-editor');
    const drawn = [...editor.querySelectorAll('.margin-view-overlays > div')]
        .find(e => e.querySelector('.line-numbers')?.innerText === String(line));
    const place = drawn.getBoundingClientRect();
    const margin = editor.querySelector('.glyph-margin').getBoundingClientRect();
    return [margin.left + margin.width / 2, place.top + place.height / 2];
}"""
ROWS: Final = """(root) => [...document.querySelectorAll(root + ' .monaco-list-row')]
    .sort((a, b) => parseInt(a.style.top) - parseInt(b.style.top))
    .map(e => [e.getAttribute('aria-label') || '', e.innerText.replace(/\\s+/g, ' ').trim()])"""
# How each pane of the side bar is laid out: one whose list has rows and draws none is blank.
PANES: Final = """() => [...document.querySelectorAll('.pane')].map(pane => {
    const {x, y, width, height} = pane.getBoundingClientRect();
    const rows = pane.querySelector('.monaco-list-rows');
    return {
        name: pane.querySelector('.pane-header')?.getAttribute('aria-label') ?? '',
        rectangle: [x, y, width, height],
        rowsHeight: rows?.style.height ?? null,
        rowsDrawn: rows?.childElementCount ?? null,
    };
})"""

STOP_LINE: Final = """() => {
    const mark = document.querySelector('.monaco-editor .debug-top-stack-frame-line');
    if (!mark) return null;
    const numbers = mark.closest('.monaco-editor').querySelectorAll('.margin-view-overlays > div');
    const top = mark.parentElement.style.top;
    const number = [...numbers].find(e => e.style.top === top)?.querySelector('.line-numbers');
    return number ? parseInt(number.innerText) : null;
}"""
WATCH_STOP_LINE: Final = f"""() => {{
    const look = {STOP_LINE};
    let last = look();
    window.stopLines = [];
    window.stopWatch?.disconnect();
    window.stopWatch = new MutationObserver(() => {{
        const line = look();
        if (line !== last && line !== null) window.stopLines.push(line);
        last = line;
    }});
    window.stopWatch.observe(document.body, {{subtree: true, childList: true, attributes: true}});
}}"""
# What a user would take for an error: red in VARIABLES or WATCH, or a notification.
WATCH_ERRORS: Final = """() => {
    window.errorsSeen = new Set();
    window.errorWatch?.disconnect();
    window.errorWatch = new MutationObserver(() => {
        const shown = '.debug-variables .error, .debug-watch .error, '
            + '.debug-variables [class*="unavailable"], .notification-toast';
        for (const each of document.querySelectorAll(shown)) {
            const text = each.innerText.replace(/\\s+/g, ' ').trim();
            if (text) window.errorsSeen.add(text);
        }
        for (const row of document.querySelectorAll('.debug-variables .monaco-list-row')) {
            if (/stale|has run on/.test(row.innerText)) window.errorsSeen.add(row.innerText);
        }
    });
    window.errorWatch.observe(document.body, {subtree: true, childList: true, attributes: true});
}"""
# The colours of the bars at the left edge of lines where ranks stand, by line.
GROUP_MARKS: Final = """() => {
    const found = {};
    for (const mark of document.querySelectorAll('.monaco-editor .view-overlays .cdr')) {
        const {borderLeftWidth, borderLeftColor} = getComputedStyle(mark);
        if (borderLeftWidth !== '4px') continue;
        const top = mark.parentElement.style.top;
        const number = [...mark.closest('.monaco-editor')
            .querySelectorAll('.margin-view-overlays > div')]
            .find(e => e.style.top === top)?.querySelector('.line-numbers')?.innerText;
        found[number] = borderLeftColor;
    }
    return found;
}"""
# The texts behind lines with a word in them: they are CSS content, not text of an element.
MARKS: Final = """(word) => {
    const found = {};
    for (const line of document.querySelectorAll('.monaco-editor .view-line')) {
        const editor = line.closest('.monaco-editor');
        const number = [...editor.querySelectorAll('.margin-view-overlays > div')]
            .find(e => e.style.top === line.style.top)?.querySelector('.line-numbers')?.innerText;
        for (const part of line.querySelectorAll('span')) {
            const text = getComputedStyle(part, '::after').content;
            if (text.includes(word)) found[number] = text.replace(/^"|"$/g, '');
        }
    }
    return found;
}"""
