import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { judgeCommand } from '../../../safety/command/judge.ts'
import { dressCommand, dressText, wordsOf } from './dresses.ts'

// What bash makes of a text decides, not how it is spelled: refused bare is refused in every dress,
// and asked about bare is never run.

const context = { knownHosts: new Set(['db-osl-1', '10.0.0.5']), knownNames: new Set(['web']) }
const verdictOf = (text: string) => judgeCommand(text, context).verdict
const strictness = { run: 0, ask: 1, refuse: 2 }

type Row = { command: string }
const rows = ['writes', 'holes'].flatMap((file): Row[] =>
  JSON.parse(readFileSync(new URL(`../../data/commands/${file}.json`, import.meta.url), 'utf8')),
)

/**
 * Interpreters are read in a way of their own: a text inside quotes of theirs is not one of the
 * shell's.
 */
const refused = rows.filter(({ command }) => /^[\x20-\x7e]+$/.test(command) && verdictOf(command) === 'refuse')

describe('a command that is refused without a disguise', () => {
  test('is one of more than sixty in the corpora', () => expect(refused.length).toBeGreaterThan(60))

  const laxer = (dresses: Readonly<Record<string, (row: string) => string | null>>): string[] =>
    refused.flatMap(({ command }) =>
      Object.entries(dresses).flatMap(([name, dress]) => {
        const dressed = dress(command)
        return dressed === null || verdictOf(dressed) === 'refuse' ? [] : [`${name}: ${dressed}`]
      }),
    )

  test.each(Object.entries(dressCommand))('is refused behind %s', (name, dress) => {
    const dressed = (text: string) => {
      const words = wordsOf(text)
      return words && dress(words)
    }
    expect(laxer({ [name]: dressed })).toEqual([])
  })

  test.each(Object.entries(dressText))('is refused as a text, behind %s', (name, dress) => {
    expect(laxer({ [name]: dress })).toEqual([])
  })
})

test.each([
  '(ls) > /dev/sda',
  '{ ls; } > /etc/passwd',
  'if ls; then ls; fi > /dev/sda',
  'for i in 1; do ls; done > /dev/sda',
  'd=/dev/sda; ls > $d',
])('a file that a group overwrites is refused as well: %s', (text) => expect(verdictOf(text)).toBe('refuse'))

test('no disguise, and no disguise over another, makes a verdict laxer', () => {
  const single = rows.flatMap(({ command }) => {
    const words = wordsOf(command)
    return words ? [{ command, words }] : []
  })
  const inner = fc.constantFrom(...Object.values(dressCommand))
  const outer = fc.constantFrom((text: string) => text, ...Object.values(dressText))
  fc.assert(
    fc.property(fc.constantFrom(...single), inner, outer, ({ command, words }, dress, cover) => {
      const dressed = cover(dress(words))
      if (strictness[verdictOf(dressed)] < strictness[verdictOf(command)])
        throw new Error(`${dressed} is judged less strictly than ${command}`)
    }),
    { numRuns: 3_000 },
  )
})
