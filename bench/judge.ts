import { readFileSync } from 'node:fs'
import { parse } from 'unbash'
import { judgeCommand } from '../safety/command/judge.ts'

import { loadSql } from '../safety/sql/inspect.ts'
import { report } from './stage.ts'

const minRows = 50_000

/** Long texts with deep nesting, which cost the judge the most. */
const nesting = [
  `echo ${'a b c d e f g h '.repeat(40)}| ${'xargs '.repeat(2_500)}id`,
  `${'find / -exec '.repeat(900)}id {} \\; `,
  `sh <<< 'ruby -e "${'`sh`'.repeat(3_000)}"'`,
  `echo ${'$('.repeat(4_000)}id${')'.repeat(4_000)}`,
].map((text) => text.slice(0, 16_384))

/**
 * Measures judgements per second on one core. Uses labelled rows repeated to 50,000, after a
 * warm-up.
 */
export async function judge(): Promise<void> {
  await loadSql()
  const commands = ['reads', 'writes', 'holes'].flatMap((name) =>
    (
      JSON.parse(readFileSync(new URL(`../test/data/commands/${name}.json`, import.meta.url), 'utf8')) as {
        command: string
      }[]
    ).map(({ command }) => command),
  )
  const context = { knownHosts: new Set(['db-osl-1', '10.0.0.5']) }
  const rounds = Math.ceil(minRows / commands.length)
  const play = (times: number) => {
    const startedAt = performance.now()
    for (let round = 0; round < times; round += 1) for (const command of commands) judgeCommand(command, context)
    return (performance.now() - startedAt) / 1000
  }
  play(Math.ceil(rounds / 5))
  const seconds = play(rounds)
  // Takes the best of several measurements, because other work of the machine is not a cost of the
  // judge.
  const each = commands.map((command) => Math.min(...Array.from({ length: 9 }, () => millisecondsOf(command))))
  const sorted = each.toSorted((a, b) => a - b)
  function millisecondsOf(command: string): number {
    const startedAt = performance.now()
    judgeCommand(command, context)
    return performance.now() - startedAt
  }
  // Uses texts that were not judged before, so that no cache helps.
  const shortest = (act: (text: string) => unknown) =>
    Math.min(
      ...Array.from({ length: 5 }, (_, round) => {
        const fresh = commands.map((command) => `${command}${' '.repeat(1 + round)}`)
        const startedAt = performance.now()
        for (const text of fresh) act(text)
        return performance.now() - startedAt
      }),
    )
  const parsing = shortest((text) => parse(text))
  const judging = shortest((text) => judgeCommand(text, context))
  report('judge', {
    'times the parse alone, over distinct texts (at most 15)': Number((judging / parsing).toFixed(1)),
    'distinct commands': commands.length,
    judgements: rounds * commands.length,
    seconds: Number(seconds.toFixed(2)),
    'judgements a second (more than 20,000)': Math.round((rounds * commands.length) / seconds),
    'median of one command (µs)': Number(((sorted[sorted.length >> 1] ?? 0) * 1000).toFixed(1)),
    'longest of one command (µs)': Math.round((sorted.at(-1) ?? 0) * 1000),
    'longest of what nests most (ms)': Math.round(Math.max(...nesting.map(millisecondsOf))),
  })
}
