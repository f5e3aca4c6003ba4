import { beforeAll, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { type CommandContext, judgeArgv, judgeCommand } from '../../../safety/command/judge.ts'
import { quote } from '../../../safety/command/unwrapped.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'
import { append, argv, enclose, text, wrap } from './layers.ts'

// 100,000 cases in all: what holds for every command, not for the ones somebody thought of.

const context: CommandContext = { knownHosts: new Set(['db1']), knownNames: new Set(['web']) }
const strictness = { run: 0, ask: 1, refuse: 2 }
const strict = (text: string): number => {
  const { verdict, code, reason } = judgeCommand(text, context)
  if (code === 'INTERNAL') throw new Error(`${text}: ${reason}`)
  return strictness[verdict]
}

beforeAll(loadSql)

const runs = { numRuns: 10_000 }

test('wrapping a command never lowers its verdict, to any depth', () => {
  fc.assert(
    fc.property(
      text,
      fc.array(fc.constantFrom(...wrap), { minLength: 1, maxLength: 4 }),
      fc.constantFrom(...enclose),
      (bare, layers, last) => {
        // The shell keyword is not the program, an assignment is no command, and what begins with -
        // is an option of a wrapper, quoted or not.
        fc.pre(!/^(?:!|time|[A-Za-z_]\w*=|'?-|'?[;&|()<>{}])/.test(bare))
        let wrapped = bare
        let least = strict(bare)
        for (const layer of [...layers, last]) {
          wrapped = layer(wrapped)
          const now = strict(wrapped)
          if (now < least) throw new Error(`${wrapped} is judged less strictly than without the last layer`)
          least = now
        }
      },
    ),
    runs,
  )
})

test('appending and piping never lower a verdict', () => {
  fc.assert(
    fc.property(text, fc.array(fc.constantFrom(...append), { minLength: 1, maxLength: 3 }), (bare, steps) => {
      const longer = steps.reduce((text, step) => step(text), bare)
      expect(strict(longer)).toBeGreaterThanOrEqual(strict(bare))
    }),
    runs,
  )
})

test('blanks, quotes round whole words and comments change nothing', () => {
  const blank = fc.constantFrom(' ', '  ', '\t', ' \\\n ')
  fc.assert(
    fc.property(
      argv,
      blank,
      fc.boolean(),
      fc.constantFrom('', ' # reboot', '\n', '  ', ' ;'),
      (words, between, double, end) => {
        fc.pre(words.every((word) => word !== '' && !/[\n]/.test(word)))
        const plain = words.map(quote).join(' ')
        const quoted = words.map((word) =>
          double && !/["$`\\!]/.test(word) ? `"${word}"` : `'${word.replaceAll("'", `'\\''`)}'`,
        )
        fc.pre(!words[0]!.includes("'") && words[0] !== '!' && !/^(?:time|\w+=.*)$/.test(words[0]!))
        expect(strict(quoted.join(between) + end)).toBe(strict(plain))
      },
    ),
    runs,
  )
})

test('quotes inside the words never lower a verdict', () => {
  fc.assert(
    fc.property(argv, fc.nat(5), (words, at) => {
      const split = words.map((word) =>
        /^[\w/.-]{2,}$/.test(word)
          ? `${word.slice(0, 1 + (at % (word.length - 1)))}''${word.slice(1 + (at % (word.length - 1)))}`
          : quote(word),
      )
      expect(strict(split.join(' '))).toBeGreaterThanOrEqual(strict(words.map(quote).join(' ')))
    }),
    runs,
  )
})

test('an argv is judged like the shell text of its quoted words', () => {
  fc.assert(
    fc.property(argv, (words) => {
      fc.pre(words.every((word) => !/['~]/.test(word)) && !/^(?:\W|time$|\w+=)/.test(words[0]!))
      expect(strictness[judgeArgv(words, context).verdict]).toBe(strict(words.map((word) => `'${word}'`).join(' ')))
    }),
    { numRuns: 5_000 },
  )
})

test('no text makes the judge throw', () => {
  const bytes = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes).toString('latin1'))
  const shellish = fc
    .array(
      fc.constantFrom(
        '$(',
        ')',
        '`',
        '"',
        "'",
        '{',
        '}',
        ';',
        '|',
        '&',
        '<<E',
        '\n',
        'E',
        '[[',
        ']]',
        '((',
        '))',
        'ls',
        ' ',
        '$',
        '*',
        '>',
        '<',
        '=',
        'if',
        'fi',
        'then',
        'case',
        'esac',
        '\\',
        '~',
        '#',
        '!',
        'sh -c',
        'find -exec',
        'awk',
        'xargs',
        ':::',
      ),
      { maxLength: 20 },
    )
    .map((parts) => parts.join(''))
  fc.assert(
    fc.property(fc.oneof(bytes, shellish, fc.string({ unit: 'binary', maxLength: 40 })), (text) => {
      const { code, reason } = judgeCommand(text, context)
      if (code === 'INTERNAL') throw new Error(reason)
    }),
    { numRuns: 8_000 },
  )
})
