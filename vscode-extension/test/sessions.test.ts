import { describe, expect, test } from 'vitest';
import { announcementOf, connectOf, labelOf, sessionsOf, startOf } from '../src/logic/sessions';

const TOLD = {
  session: '127.0.0.1:5677',
  host: '127.0.0.1',
  port: 5677,
  unix: '/run/user/1/dap-mux/9.sock',
  pid: 9,
  groups: ['job'],
};

describe('what `dap-mux sessions --json` tells', () => {
  test('no session, and one', () => {
    expect(sessionsOf('[]')).toEqual([]);
    const [only] = sessionsOf(JSON.stringify([TOLD]));
    expect(only).toMatchObject({ host: '127.0.0.1', port: 5677, pid: 9, socket: TOLD.unix });
  });

  test.each(['', '{}', '[1]', '[null]', '[{"host": "h"}]', '[{"host": "h", "port": "1", "pid": 1}]'])(
    '%j is refused',
    (text) => {
      expect(() => sessionsOf(text)).toThrow(SyntaxError);
    },
  );

  test.each([
    [['job'], '127.0.0.1:5677'],
    [['eval', 'trainer'], '127.0.0.1:5677 · eval, trainer'],
  ])('groups %j are shown as %j', (groups, label) => {
    const [session] = sessionsOf(JSON.stringify([{ ...TOLD, groups }]));
    expect(session && labelOf(session)).toBe(label);
  });

  test('its start is a time of today, or one of an earlier day', () => {
    const started = new Date(2026, 4, 9, 14, 3, 7);
    const [session] = sessionsOf(JSON.stringify([{ ...TOLD, started: started.getTime() / 1000 }]));
    const time = started.toLocaleTimeString(undefined, { timeStyle: 'medium' });
    const onTheDay = session && startOf(session, new Date(2026, 4, 9, 23));
    const later = session && startOf(session, new Date(2026, 4, 10));
    expect(onTheDay).toBe(time);
    expect(later).toMatch(time);
    expect(later).not.toBe(time);
    const [older] = sessionsOf(JSON.stringify([TOLD]));
    expect(older && startOf(older)).toBe('?');
  });

  test('an IPv6 address has brackets', () => {
    const [session] = sessionsOf(JSON.stringify([{ ...TOLD, host: '::1' }]));
    expect(session && labelOf(session)).toBe('[::1]:5677');
  });

  test('it is joined by its socket, by its port where it has none', () => {
    const joined = [TOLD, { ...TOLD, unix: null }].map((each) => {
      const [session] = sessionsOf(JSON.stringify([each]));
      return session && connectOf(session);
    });
    expect(joined).toEqual([{ socket: TOLD.unix }, { host: '127.0.0.1', port: 5677 }]);
  });
});

describe('an announcement', () => {
  test('names the job and its folder', () => {
    const told = announcementOf(JSON.stringify({ ...TOLD, name: 'train.py', cwd: '/work' }));
    expect(told).toMatchObject({ name: 'train.py', folder: '/work', port: 5677 });
  });

  test('without them it is a job somewhere', () => {
    expect(announcementOf(JSON.stringify(TOLD))).toMatchObject({ name: 'job', folder: undefined });
  });

  test.each(['', 'GET / HTTP/1.1', 'null', '[]'])('%j is refused', (text) => {
    expect(() => announcementOf(text)).toThrow(SyntaxError);
  });
});
