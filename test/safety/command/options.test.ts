import { expect, test } from '@jest/globals'
import type { Grammar } from '../../../safety/command/grammar.ts'
import { compile, read } from '../../../safety/command/options.ts'

const reading = (grammar: Grammar, text: string) => {
  const words = text.split(' ').map((text) => ({ text, literal: true, quoting: 'bare' as const, pattern: null }))
  return read(words, compile({ it: grammar }).get('it')!)
}
const values = (grammar: Grammar, text: string) =>
  reading(grammar, text).values.map(({ kind, word }) => `${kind} ${word.text}`)
const misfit = (grammar: Grammar, text: string) => reading(grammar, text).problem?.word?.text

const lines: Grammar = {
  manual: 'test',
  options: {
    '-n': 'number',
    '-q': 'flag',
    '-v': 'flag',
    '--lines': 'number',
    '--color': 'text?',
    '-f': 'file',
    '-w': 'sink',
  },
  digits: true,
  operands: { rest: 'file' },
}

test('short options cluster, and values follow directly or as the next word', () => {
  expect(values(lines, 'it -qvn5 a')).toEqual(['number 5', 'file a'])
  expect(values(lines, 'it -qn 5 a')).toEqual(['number 5', 'file a'])
  expect(values(lines, 'it a --lines=5 -20')).toEqual(['number 5', 'file a'])
  expect(values(lines, 'it --lines 5')).toEqual(['number 5'])
  expect(values(lines, 'it -f=/etc/shadow')).toEqual(['file /etc/shadow'])
})

test('a value that may only be attached never takes the next word', () => {
  expect(values(lines, 'it --color auto')).toEqual(['file auto'])
  expect(values(lines, 'it --color=auto')).toEqual(['text auto'])
})

test('after two dashes everything is an operand', () => {
  expect(values(lines, 'it -- -x --lines')).toEqual(['file -x', 'file --lines'])
})

test.each([
  ['it -x', '-x'],
  ['it -qx', '-qx'],
  ['it --line=5', '--line=5'],
  ['it --quiet', '--quiet'],
  ['it -n', '-n'],
])('an option that the manual lacks is named: %s', (text, word) => expect(misfit(lines, text)).toBe(word))

test('long names with one dash do not cluster', () => {
  const find: Grammar = {
    manual: 'test',
    style: 'word',
    options: { '-name': 'text', '-ls': 'flag' },
    operands: { rest: 'file' },
  }
  expect(values(find, 'it /x -name y -ls')).toEqual(['text y', 'file /x'])
  expect(misfit(find, 'it -l')).toBe('-l')
})

test('a sub-command has its own options besides those of its program', () => {
  const git: Grammar = {
    manual: 'test',
    options: { '-C': 'file' },
    commands: { log: { manual: 'test', options: { '-n': 'number' }, operands: { rest: 'text' } } },
  }
  expect(values(git, 'it -C /x log -n 5 main')).toEqual(['file /x', 'number 5', 'text main'])
  expect(misfit(git, 'it push')).toBe('push')
  expect(reading(git, 'it').problem).toMatchObject({ missing: true })
})

test('a pattern is no operand if an option gives it', () => {
  const grep: Grammar = {
    manual: 'test',
    options: { '-e': 'text' },
    operands: { first: ['text'], rest: 'file', unlessOption: ['-e'] },
  }
  expect(values(grep, 'it x f')).toEqual(['text x', 'file f'])
  expect(values(grep, 'it f -e x')).toEqual(['text x', 'file f'])
})

test('letters without a dash take their values in order', () => {
  const tar: Grammar = {
    manual: 'test',
    bsd: 'tvf',
    bsdValues: { f: 'file' },
    options: { '-t': 'flag' },
    requires: ['-t'],
    operands: { rest: 'text' },
  }
  expect(values(tar, 'it tvf a b')).toEqual(['file a', 'text b'])
  expect(reading(tar, 'it vf a').problem).toMatchObject({ missing: true })
})
