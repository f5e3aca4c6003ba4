import { beforeAll, describe, expect, test } from '@jest/globals'
import { decide, type Finding } from '../../../safety/command/analysis.ts'
import type { Grammar } from '../../../safety/command/grammar.ts'
import { judgeCommand } from '../../../safety/command/judge.ts'
import { compile, read } from '../../../safety/command/options.ts'
import { unboundedByGrammar, unboundedByName } from '../../../safety/command/outputs.ts'
import type { Word } from '../../../safety/command/parse.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'

describe('bounds', () => {
  const judged = (text: string) => judgeCommand(text, { knownHosts: new Set(['db1']), knownNames: new Set(['web']) })

  beforeAll(loadSql)

  test.each([
    ['journalctl -f', 'unbounded_stream'],
    ['journalctl -fu nginx', 'unbounded_stream'],
    ['tail -f /var/log/syslog | grep x', 'unbounded_stream'],
    ['tail -f /var/log/syslog 2>/dev/null', 'unbounded_stream'],
    ['docker logs web -f', 'unbounded_stream'],
    ['kubectl logs -f web -n prod', 'unbounded_stream'],
    ['iostat 1', 'unbounded_stream'],
    ['ping db1', 'unbounded_stream'],
    ['watch -n 1 "df -h | head"', 'unbounded_stream'],
    ['top', 'unbounded_stream'],
    ['less /var/log/syslog', 'pager'],
    ['tcpdump -i eth0', 'unbounded_stream'],
    ['journalctl -f -n 200', 'unbounded_stream'],
    ['journalctl --foll -u nginx', 'unbounded_stream'],
    ['tail --fol /var/log/syslog', 'unbounded_stream'],
    ['tail -F -n 5 /var/log/syslog', 'unbounded_stream'],
    ['kubectl logs -f web --tail 20', 'unbounded_stream'],
    ['kubectl logs --follow=true web', 'unbounded_stream'],
    ['kubectl get pods -w -n prod', 'unbounded_stream'],
    ['kubectl rollout status deploy/web', 'unbounded_stream'],
    ['docker logs -f --since 10m web', 'unbounded_stream'],
    ['dmesg --foll', 'unbounded_stream'],
    ['iotop', 'unbounded_stream'],
    ['cat /var/log/syslog | less', 'pager'],
    ['docker exec -it web ls /', 'tty_flag'],
    ["bash -c 'journalctl -f'", 'unbounded_stream'],
    ['env LC_ALL=C tail -f "/var/log/my log"', 'unbounded_stream'],
    ['ssh db1 tail -f /var/log/syslog', 'unbounded_stream'],
  ])('an endless read is told its bounded form, which runs: %s', (text, bound) => {
    const verdict = judged(text)
    expect(verdict).toMatchObject({ verdict: 'ask', code: 'UNBOUNDED', effect: 'read', bound })
    expect(judged(verdict.rewrite!)).toMatchObject({ verdict: 'run', bound: null })
  })

  test.each([
    ['psql', 'interactive_repl'],
    ['mysql', 'interactive_repl'],
    ['python3', 'interactive_repl'],
    ['bash', 'interactive_repl'],
    ['ssh db1', 'interactive_repl'],
    ['vim /etc/hosts', 'pager'],
    ['cat /dev/zero', 'unbounded_stream'],
  ])('what has no bounded form gets none: %s', (text, bound) => {
    expect(judged(text)).toMatchObject({ verdict: 'ask', bound, rewrite: null })
  })

  test('a timeout bounds a stream, if it ends it soon and for certain', () => {
    expect(judged('timeout 5 journalctl -f').verdict).toBe('run')
    for (const text of ['timeout 0 journalctl -f', 'timeout 1d journalctl -f', 'timeout -s 0 5 journalctl -f']) {
      expect(judged(text).verdict).toBe('ask')
    }
  })

  test('a rewrite never carries a write along', () => {
    expect(judged('rm x; journalctl -f')).toMatchObject({ code: 'UNKNOWN_COMMAND', rewrite: null })
    expect(judged('sudo journalctl -f')).toMatchObject({ code: 'ROOT', rewrite: null, bound: 'unbounded_stream' })
  })
})

describe('bounds edges', () => {
  const words = (line: string): Word[] =>
    line.split(' ').map((text) => ({ text, literal: !text.includes('$'), quoting: 'bare', pattern: null }))

  /** `pager: head -n 200 x`, `pager: -` where there is no bounded form, `pager:` where it is best left out, or null. */
  function byName(line: string, piped = false): string | null {
    const all = words(line)
    const found = unboundedByName(all[0]!.text, all, piped)
    return found && `${found.bound}: ${found.words?.join(' ') ?? '-'}`
  }
  function byGrammar(grammar: Partial<Grammar>, line: string, piped = false, name = 'show'): string | null {
    const all = words(line)
    const made: Grammar = { manual: '', options: {}, operands: { rest: 'text' }, ...grammar }
    const found = unboundedByGrammar(name, read(all, compile({ show: made }).get('show')!), all, piped)
    return found && `${found.bound}: ${found.words?.join(' ') ?? '-'}`
  }

  describe('by its name alone', () => {
    test.each<[string, boolean, string | null]>([
      ['less x', false, 'pager: head -n 200 x'],
      ['less', true, 'pager: '],
      ['less', false, 'pager: -'],
      ['less x', true, 'pager: head -n 200 x'],
      ['less x y', false, 'pager: -'],
      ['less -R', false, 'pager: -'],
      ['less +F', false, 'pager: -'],
      ['less a-b', false, 'pager: head -n 200 a-b'],
      ['less $x', false, 'pager: -'],
      ['vim x', false, 'pager: -'],
      ['htop', false, 'unbounded_stream: top -b -n 1'],
      ['atop', false, 'unbounded_stream: -'],
      ['python3', false, 'interactive_repl: -'],
      ['python3', true, null],
      ['python3 x', false, null],
      ['python3 x', true, null],
      ['frobnicate', false, null],
    ])('%j, behind a pipe %s: %s', (line, piped, expected) => {
      expect(byName(line, piped)).toBe(expected)
    })
  })

  describe('by its grammar', () => {
    const follow: Partial<Grammar> = {
      options: { '-f': 'flag', '-a': 'flag', '-n': 'number', '-s': 'number', '--follow': 'flag', '-c': 'number' },
      endless: {
        when: ['-f', '--follow', '-s'],
        unless: ['-c'],
        instead: { drop: ['-f', '--follow', '-s'], add: ['-n', '100'] },
      },
    }
    test.each([
      ['show x', null],
      ['show -f x', 'unbounded_stream: show -n 100 x'],
      ['show --follow x', 'unbounded_stream: show -n 100 x'],
      ['show -af x', 'unbounded_stream: show -n 100 -a x'],
      ['show -fa x', 'unbounded_stream: show -n 100 -a x'],
      ['show -ff x', 'unbounded_stream: show -n 100 x'],
      ['show -a -f x', 'unbounded_stream: show -n 100 -a x'],
      ['show -s 5 x', 'unbounded_stream: show -n 100 x'],
      ['show -f -c 5 x', null],
      ['show -a x', null],
    ])('%j: %s', (line, expected) => {
      expect(byGrammar(follow, line)).toBe(expected)
    })

    test.each<[string, string[], string]>([
      ['show -f x', ['-n', '100', 'y'], 'unbounded_stream: show -n 100 y x'],
      ['show -f x', ['y', '-n'], 'unbounded_stream: show -n x y'],
      ['show -f x', ['y'], 'unbounded_stream: show x y'],
      ['show -f x', [], 'unbounded_stream: show x'],
    ])('%j with %j put in: %s', (line, add, expected) => {
      expect(byGrammar({ ...follow, endless: { when: ['-f'], instead: { drop: ['-f'], add } } }, line)).toBe(expected)
    })

    test('what is put in stands behind the sub-command it is for', () => {
      const logs: Partial<Grammar> = {
        options: { '-C': 'text' },
        commands: { logs: { manual: '', ...follow, operands: { rest: 'name' } } },
      }
      expect(byGrammar(logs, 'show -C z logs -f x')).toBe('unbounded_stream: show -C z logs -n 100 x')
    })

    test.each([
      ['show 1', 'unbounded_stream: show 1 1'],
      ['show 1.5', 'unbounded_stream: show 1.5 1'],
      ['show 10', 'unbounded_stream: show 10 1'],
      ['show 1.25', 'unbounded_stream: show 1.25 1'],
      ['show 1 5', null],
      ['show', null],
      ['show x', null],
      ['show x1', null],
      ['show 1x', null],
      ['show 1.x', null],
    ])('an interval alone repeats for ever: %j: %s', (line, expected) => {
      expect(byGrammar({ endless: { when: 'interval', instead: { drop: [], add: ['1'] } } }, line)).toBe(expected)
    })

    test('always, with and without a form that ends', () => {
      expect(byGrammar({ endless: { when: 'always', instead: null } }, 'show x')).toBe('unbounded_stream: -')
      expect(
        byGrammar(
          { endless: { when: 'always', instead: { drop: [], add: ['-1'] } }, options: { '-1': 'flag' } },
          'show x',
        ),
      ).toBe('unbounded_stream: show -1 x')
    })

    test.each<[string, boolean, string | null]>([
      ['show', false, 'interactive_repl: -'],
      ['show db', false, 'interactive_repl: -'],
      ['show db x', false, null],
      ['show', true, null],
      ['show -z', false, null],
    ])('a prompt that is told nothing to do waits: %j, behind a pipe %s: %s', (line, piped, expected) => {
      const sql: Partial<Grammar> = { options: { '-e': 'text' }, requires: ['-e'] }
      expect(byGrammar(sql, line, piped, 'mysql')).toBe(expected)
      expect(byGrammar(sql, line, piped, 'show')).toBe(null)
    })
  })

  describe('the strictest finding decides', () => {
    const finding = (code: Finding['code']): Finding => ({ code, reason: `why ${code}`, token: null })
    const decided = (...codes: Finding['code'][]) => {
      const { verdict, effect, code } = decide(codes.map(finding))
      return `${verdict} ${effect} ${code}`
    }
    test.each<[Finding['code'][], string]>([
      [[], 'run read READ'],
      [['ARGUMENT'], 'ask write ARGUMENT'],
      [['ARGUMENT', 'FORBIDDEN'], 'refuse forbidden FORBIDDEN'],
      [['TOO_LONG'], 'refuse forbidden TOO_LONG'],
      [['UNREADABLE'], 'refuse forbidden UNREADABLE'],
      [['HIDDEN_CHARACTER'], 'refuse forbidden HIDDEN_CHARACTER'],
      [['FOREIGN_CHARACTER'], 'refuse forbidden FOREIGN_CHARACTER'],
      [['UNBOUNDED'], 'ask read UNBOUNDED'],
      [['UNBOUNDED', 'SENSITIVE_PATH'], 'ask read SENSITIVE_PATH'],
      [['UNBOUNDED', 'ARGUMENT'], 'ask write ARGUMENT'],
      [['SENSITIVE_PATH', 'EXFILTRATION', 'UNKNOWN_NAME'], 'ask read SENSITIVE_PATH'],
      [['SENSITIVE_PATH', 'WRAPPER'], 'ask write SENSITIVE_PATH'],
    ])('of %j: %s', (codes, expected) => {
      expect(decided(...codes)).toBe(expected)
    })

    test('and is told as it was found', () => {
      expect(decide([{ code: 'ROOT', reason: 'as root', token: 'sudo' }])).toMatchObject({
        reason: 'as root',
        token: 'sudo',
      })
      expect(decide([])).toMatchObject({ reason: 'every command only looks', token: null })
    })
  })
})
