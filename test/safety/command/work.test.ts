import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { stepsForAnyText, stepsPerCharacter } from '../../../safety/command/analysis.ts'
import { countSteps, judgeCommand } from '../../../safety/command/judge.ts'
import { parse } from '../../../safety/command/parse.ts'
import { unwrap } from '../../../safety/command/unwrap.ts'

const context = { knownHosts: new Set(['h']) }
const single = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
const double = (text: string) => `"${text.replace(/["\\$`]/g, '\\$&')}"`

/** Ways in which one text holds another, some of them twice. */
const wraps: ((text: string) => string)[] = [
  (text) => `sh -c ${single(text)}`,
  (text) => `bash <<< ${single(text)}`,
  (text) => `sh <<X\n${text}\nX`,
  (text) => `ruby -e ${single(`system(${double(text)}); \`${text}\``)}`,
  (text) => `perl -e ${single(`exec(${double(text)})`)} ${single(text)}`,
  (text) => `python3 -c ${single(`import os; os.system(${double(text)})`)}`,
  (text) => `echo $(${text})`,
  (text) => `echo ${text} | sh`,
  (text) => `find / -exec ${text} \\; -exec ${text} \\;`,
  (text) => `echo a b c d | xargs ${text}`,
  (text) => `parallel ${text} ::: a b c`,
  (text) => `alias a=${single(text)} b=${single(text)}`,
  (text) => `sudo ssh h ${single(text)}`,
  (text) => `awk ${single(`BEGIN { system(${double(text)}) }`)}`,
]
const nested = fc
  .tuple(fc.array(fc.nat(wraps.length - 1), { maxLength: 14 }), fc.constantFrom('sh', 'id', 'ls -la /', 'rm -rf /'))
  .map(([ways, inner]) => {
    let text: string = inner
    for (const way of ways) {
      const wrapped = (wraps[way] as (text: string) => string)(text)
      if (wrapped.length > 8_000) break
      text = wrapped
    }
    return text
  })

describe('judging a text costs little', () => {
  test('at most 48 steps for each character and twenty thousand for any text, however it nests', () => {
    fc.assert(
      fc.property(nested, (text) => {
        expect(countSteps(text, context)).toBeLessThanOrEqual(stepsPerCharacter * text.length + stepsForAnyText)
      }),
      { numRuns: 400 },
    )
    expect([stepsPerCharacter, stepsForAnyText]).toEqual([48, 20_000])
  })

  test.each([
    ['an interpreter whose shell reads the text it stands in', `sh <<< 'ruby -e "\`sh\`"'`],
    ['find in find', `${'find / -exec '.repeat(40)}id {} \\; ${'\\; '.repeat(39)}`],
    ['xargs in xargs', `echo ${'a '.repeat(40)}| ${'xargs '.repeat(40)}id`],
    [
      'shells in here-documents',
      Array.from({ length: 200 }).reduce((text, _, at) => `sh <<E${at}\n${text}\nE${at}`, 'id') as string,
    ],
  ])('%s ends, and does not run without approval', (_what, text) => {
    expect(['ask', 'refuse']).toContain(judgeCommand(text, context).verdict)
    expect(countSteps(text, context)).toBeLessThanOrEqual(stepsPerCharacter * text.length + stepsForAnyText)
  })

  test('a text that costs more is asked about, even if its judged part only reads', () => {
    const text = `echo ${'a '.repeat(40)}| ${'xargs '.repeat(38)}id`
    expect(judgeCommand(text, context)).toMatchObject({ verdict: 'ask' })
    const verdict = judgeCommand(`${'find / -exec '.repeat(30)}id {} \\; ${'\\; '.repeat(29)}`, context)
    expect(verdict).toMatchObject({ verdict: 'ask' })
  })

  test('honest layers of quoting stay far below the limit', () => {
    let text = 'cat /var/log/syslog'
    for (let layer = 0; layer < 4; layer += 1) text = `sh -c ${single(text)}`
    expect(judgeCommand(text, context).verdict).toBe('run')
    expect(countSteps(text, context)).toBeLessThan(stepsForAnyText / 10)
  })
})

describe('text whose cost grows with the square of its length is not searched', () => {
  test.each([
    ['substitutions in one another', `${'echo $('.repeat(2_000)}${')'.repeat(2_000)}`],
    ['the same cut off in the middle', 'echo $('.repeat(2_000)],
    ['braces in one another', `echo ${'{a,'.repeat(4_000)}`],
    ['braces beside one another', `echo ${'{a,b}'.repeat(3_200)}`],
    ['backquotes', `echo ${'`'.repeat(8_000)}`],
    ['names that lead to one another', Array.from({ length: 800 }, (_, at) => `alias a${at}=a${at + 1}`).join(';')],
  ])('%s are asked about at once', (_, text) => {
    expect(judgeCommand(text, context)).toMatchObject({ verdict: 'ask', effect: 'write' })
    expect(judgeCommand(text, context).reason).toContain('too many ways to check')
  })
})

describe('text that is copied for each of many words has a limit', () => {
  const words = (text: string, count: number) => Array.from({ length: count }, () => text).join(' ')
  const firstOf = (text: string) => parse(text)!.pipelines[0]!

  test('xargs of a long command with many operands', () => {
    const [, xargs] = firstOf(`echo ${words('a', 320)} | ${words('xargs', 2_400)}`)
    const { candidates } = unwrap('xargs', xargs!.words, xargs!.input, true)!
    const copied = candidates.reduce((sum, candidate) => sum + candidate.length, 0)
    expect(copied).toBeGreaterThan(0)
    expect(copied).toBeLessThan(20_000)
  })

  test('a loop with a long body', () => {
    const text = `for f in ${words('a', 16)}; do ${words('echo $f;', 1_900)} done`
    expect(parse(text)!.pipelines.length).toBeLessThan(2_000)
  })

  test('a text that passes through many commands of a pipe', () => {
    const pipe = firstOf(`echo ${words('a', 2_000)} ${words('| tr a b', 1_000)}`)
    expect(pipe.filter(({ input }) => input !== null).length).toBeLessThan(20)
    expect(pipe[4]!.input).toContain('b')
  })
})
