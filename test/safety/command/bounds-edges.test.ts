import { describe, expect, test } from '@jest/globals'
import { decide, type Finding } from '../../../safety/command/analysis.ts'
import type { Grammar } from '../../../safety/command/grammar.ts'
import { compile, read } from '../../../safety/command/options.ts'
import { unboundedByGrammar, unboundedByName } from '../../../safety/command/outputs.ts'
import type { Word } from '../../../safety/command/parse.ts'

const words = (line: string): Word[] =>
  line.split(' ').map((text) => ({ text, literal: !text.includes('$'), quoting: 'bare', pattern: null }))

/**
 * `pager: head -n 200 x`, `pager: -` where there is no bounded form, `pager:` where it is best left
 * out, or null.
 */
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
  ])('%j with %j added: %s', (line, add, expected) => {
    expect(byGrammar({ ...follow, endless: { when: ['-f'], instead: { drop: ['-f'], add } } }, line)).toBe(expected)
  })

  test('an added option follows the sub-command that it is for', () => {
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
  ])('a prompt without a command waits: %j, behind a pipe %s: %s', (line, piped, expected) => {
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

  test('and is reported as it was found', () => {
    expect(decide([{ code: 'ROOT', reason: 'as root', token: 'sudo' }])).toMatchObject({
      reason: 'as root',
      token: 'sudo',
    })
    expect(decide([])).toMatchObject({ reason: 'every command only reads', token: null })
  })
})
