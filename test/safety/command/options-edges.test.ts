import { describe, expect, test } from '@jest/globals'
import type { Grammar } from '../../../safety/command/grammar.ts'
import { type CommandReading, compile, read } from '../../../safety/command/options.ts'
import type { Word } from '../../../safety/command/parse.ts'

// A grammar of a program that there is not, so that each rule of reading stands alone.

const word = (text: string): Word => ({ text, literal: !/[$*]/.test(text), quoting: 'bare', pattern: null })
const grammar = (more: Partial<Grammar> = {}): Grammar => ({
  manual: 'show(1)',
  options: {
    '-a': 'flag',
    '-b': 'flag',
    '-n': 'number',
    '-f': 'file',
    '-c': 'text?',
    '--all': 'flag',
    '--lines': 'number',
    '--color': 'text?',
  },
  operands: { rest: 'file' },
  ...more,
})

function reading(more: Partial<Grammar>, line: string): CommandReading {
  const words = ['show', ...line.split(' ').filter((text) => text !== '')].map(word)
  return read(words, compile({ show: grammar(more) }).get('show')!)
}

/**
 * `number:5 file:x*` (a star where any number of such words may stand), or the word that did not
 * fit and why.
 */
function told(more: Partial<Grammar>, line: string): string {
  const { problem, values } = reading(more, line)
  if (problem)
    return `${problem.missing ? 'missing' : problem.word?.text}: ${problem.why.split(' ').slice(0, 6).join(' ')}`
  return values.map(({ kind, word: { text }, repeats }) => `${kind}:${text}${repeats ? '*' : ''}`).join(' ')
}
const found = (more: Partial<Grammar>, line: string) =>
  reading(more, line).found.map(
    ({ name, at, clustered, valueAt }) =>
      `${name}@${at}${clustered ? ' in a cluster' : ''}${valueAt === null ? '' : ` value ${valueAt}`}`,
  )

describe('options of the usual kind', () => {
  test.each([
    ['', ''],
    ['x y', 'file:x* file:y*'],
    ['-a x', 'file:x*'],
    ['-ab x', 'file:x*'],
    ['-an5 x', 'number:5 file:x*'],
    ['-an 5 x', 'number:5 file:x*'],
    ['-n5', 'number:5'],
    ['-n=5', 'number:5'],
    ['-nx=5', 'number:x=5'],
    ['--lines 5 x', 'number:5 file:x*'],
    ['--lines=5', 'number:5'],
    ['--lines=a=5', 'number:a=5'],
    ['--color x', 'file:x*'],
    ['--color=x', 'text:x'],
    ['-cx', 'text:x'],
    ['-c x', 'file:x*'],
    ['-', 'file:-*'],
    ['-- -a', 'file:-a*'],
    ['-- -- x', 'file:--* file:x*'],
    ['x -a', 'file:x*'],
    ['-n', '-n: lacks a value'],
    ['--lines', '--lines: lacks a value'],
    ['-an', '-an: lacks a value'],
    ['-ax', '-ax: is not a known read-only option'],
    ['-z', '-z: is not a known read-only option'],
    ['--al', '--al: is not a known read-only option'],
    ['--all=x', '--all=x: is not a known read-only option'],
    ['--nothing=x', '--nothing=x: is not a known read-only option'],
    ['-a=x', '-a=x: is not a known read-only option'],
    ['-$x', '-$x: is not a known read-only option'],
    ['-a$x', '-a$x: is not a known read-only option'],
    ['-5', '-5: is not a known read-only option'],
    ['-x--', '-x--: is not a known read-only option'],
    ['-=x', '-=x: is not a known read-only option'],
  ])('%j is read as %j', (line, expected) => {
    expect(told({}, line)).toBe(expected)
  })

  test.each([
    ['-a', ['-a@1']],
    ['-ab', ['-a@1 in a cluster', '-b@1 in a cluster']],
    ['-an 5 -b', ['-a@1 in a cluster', '-n@1 in a cluster value 2', '-b@3']],
    ['-n 5', ['-n@1 value 2']],
    ['-n5', ['-n@1 in a cluster']],
    ['--lines=5', ['--lines@1']],
    ['--color x', ['--color@1']],
    ['x', []],
  ])('%j was found at its place: %j', (line, expected) => {
    expect(found({}, line)).toEqual(expected)
  })

  test('a value of an option is one word, whatever the shell makes of it', () => {
    const star: Word = { text: 'a*', literal: false, quoting: 'bare', pattern: 'a*' }
    const program = compile({ show: grammar() }).get('show')!
    expect(read([word('show'), word('-f'), star], program).values[0]).toMatchObject({ repeats: false, word: star })
    const glued = { ...word('-fx'), pattern: '-fx' }
    expect(read([word('show'), glued], program).values[0]).toMatchObject({ word: { text: 'x', pattern: null } })
  })
})

describe('numbers as options', () => {
  test.each([
    ['-20 x', 'file:x*'],
    ['-2', ''],
    ['-2x', '-2x: is not a known read-only option'],
    ['x-2', 'file:x-2*'],
    ['-a2', '-a2: is not a known read-only option'],
  ])('%j: %j', (line, expected) => {
    expect(told({ digits: true }, line)).toBe(expected)
  })
})

describe('names with one dash', () => {
  const java = { style: 'word', options: { '-name': 'text', '-print': 'flag', '-D': 'flag', '--x': 'text' } } as const
  test.each([
    ['-name x', 'text:x'],
    ['-name=x', 'text:x'],
    ['--x=y', 'text:y'],
    ['-print x', 'file:x*'],
    ['-print=x', '-print=x: is not a known read-only option'],
    ['-DD', '-DD: is not a known read-only option'],
    ['-=x', '-=x: is not a known read-only option'],
  ])('%j: %j', (line, expected) => {
    expect(told(java, line)).toBe(expected)
  })
})

describe('if only named words are options', () => {
  const plain = { style: 'plain', options: { '-n': 'flag', '--format': 'text' } } as const
  test.each([
    ['-n -x --- x', 'file:-x* file:---* file:x*'],
    ['--format=x', 'text:x'],
    ['--format x', 'text:x'],
    ['--other=x', 'file:--other=x*'],
    ['-n=x', 'file:-n=x*'],
    ['x--format=y', 'file:x--format=y*'],
    ['--format', '--format: lacks a value'],
    ['--formatx', 'file:--formatx*'],
  ])('%j: %j', (line, expected) => {
    expect(told(plain, line)).toBe(expected)
  })
})

describe('letters without a dash', () => {
  const tar = { bsd: 'tvf', bsdValues: { f: 'file' }, requires: ['-t'], operands: { rest: 'text' } } as const
  test.each([
    ['tvf x y', 'file:x text:y*'],
    ['tv x', 'text:x*'],
    ['tvf', 'tvf: lacks a value'],
    ['vf x', 'missing: one of -t is missing'],
    ['tx', 'missing: one of -t is missing'],
    ['-a tvf', 'missing: one of -t is missing'],
  ])('%j: %j', (line, expected) => {
    expect(told(tar, line)).toBe(expected)
  })

  test('are found as options, with the values that follow', () => {
    expect(found(tar, 'tvf x')).toEqual(['-t@1 in a cluster', '-v@1 in a cluster', '-f@1 in a cluster value 2'])
    expect(told({ bsd: 'aux' }, 'aux')).toBe('')
    expect(told({}, 'aux')).toBe('file:aux*')
  })
})

describe('operands', () => {
  test.each<[Grammar['operands'], string, string]>([
    [{ first: ['text'], rest: 'file' }, 'x y z', 'text:x file:y* file:z*'],
    [{ first: ['text'], rest: 'file', unlessOption: ['-f'] }, '-f p y', 'file:p file:y*'],
    [{ first: ['text', 'name'], unlessOption: ['-f'] }, '-f p y', 'file:p name:y'],
    [{ first: ['text'] }, 'x y', 'y: is one operand too many'],
    [{ first: ['text'], unlessOption: ['-f'] }, '-f p y', 'y: is one operand too many'],
    [undefined, 'x', 'x: is one operand too many'],
    [{ first: ['text'], min: 1 }, '', 'missing: an operand is missing'],
    [{ first: ['text'], min: 1 }, 'x', 'text:x'],
    [{ first: ['text'], min: 1, unlessOption: ['-f'] }, '-f p', 'file:p'],
    [{ first: ['text'], rest: 'file', min: 2, unlessOption: ['-f'] }, '-f p', 'missing: an operand is missing'],
  ])('%j reads %j as %j', (operands, line, expected) => {
    expect(told({ operands }, line)).toBe(expected)
  })
})

describe('words among operands', () => {
  const find = { keywords: ['(', '!', '-a', '--'], operands: { rest: 'file' } } as const
  test.each([
    ['! ( x -a y', 'file:x* file:y*'],
    ['-- -b', ''],
    ['( -z', '-z: is not a known read-only option'],
  ])('%j: %j', (line, expected) => {
    expect(told(find, line)).toBe(expected)
  })
})

describe('sub-commands', () => {
  const git: Partial<Grammar> = {
    options: { '-C': 'file' },
    operands: undefined,
    commands: {
      log: { manual: '', options: { '-n': 'number' }, operands: { rest: 'name' } },
      remote: { manual: '', bare: true, commands: { show: { manual: '', operands: { rest: 'name' } } } },
    },
  }
  test.each([
    ['log -n 5 x', 'number:5 name:x*'],
    ['-C /x log', 'file:/x'],
    ['log -C /x', 'file:/x'],
    ['remote', ''],
    ['remote show x', 'name:x*'],
    ['', 'missing: a sub-command is missing'],
    ['push', 'push: is not a known read-only sub-command'],
    ['remote push', 'push: is not a known read-only sub-command'],
    ['*', '*: is not a known read-only sub-command'],
    ['-n 5 log', '-n: is not a known read-only option'],
  ])('%j: %j', (line, expected) => {
    expect(told(git, line)).toBe(expected)
  })

  test('choose the grammar, and the word that chose the last is known', () => {
    const { chosenAt, grammars } = reading(git, '-C /x remote show y')
    expect([chosenAt, grammars.length]).toEqual([4, 3])
    expect(reading({}, 'x')).toMatchObject({ chosenAt: 0, found: [], operands: [{ text: 'x' }] })
  })

  test('keep the style of their program if they have none of their own', () => {
    const outer: Partial<Grammar> = { style: 'plain', commands: { say: { manual: '', operands: { rest: 'text' } } } }
    expect(told(outer, 'say -x')).toBe('text:-x*')
    const own: Partial<Grammar> = {
      style: 'plain',
      commands: { say: { manual: '', style: 'posix', operands: { rest: 'text' } } },
    }
    expect(told(own, 'say -x')).toBe('-x: is not a known read-only option')
  })
})

describe('a condition of a grammar', () => {
  test.each([
    ['secrets', 'secrets: does more than read here, or'],
    ['my-Secret', 'my-Secret: does more than read here, or'],
    ['-f secret', 'secret: does more than read here, or'],
    ['pods', 'file:pods*'],
  ])('is a pattern that no value may match: %j', (line, expected) => {
    expect(told({ refuses: ['secret'] }, line)).toBe(expected)
  })

  test('is an option that must be there', () => {
    expect(told({ requires: ['-a', '--all'] }, 'x')).toBe('missing: one of -a, --all is missing')
    expect(told({ requires: ['-a', '--all'] }, '-ba x')).toBe('file:x*')
    expect(told({ requires: ['-a', '--all'] }, '--all x')).toBe('file:x*')
  })
})

test('programs with a common grammar share its compiled form', () => {
  const shared = grammar()
  const programs = compile({ cat: shared, tac: shared, wc: grammar() })
  expect(programs.get('cat')).toBe(programs.get('tac'))
  expect(programs.get('cat')).not.toBe(programs.get('wc'))
})
