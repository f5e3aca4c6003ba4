import { readFileSync } from 'node:fs'
import { judgeCommand } from '../safety/command/judge.ts'
import { loadSql } from '../safety/sql/inspect.ts'
import { report } from './report.ts'

const rowsAtLeast = 50_000

/** Judgements a second on one core: every labelled row of our own, as often as it takes to make 50,000, warm, in process. */
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
  const rounds = Math.ceil(rowsAtLeast / commands.length)
  const play = (times: number) => {
    const startedAt = performance.now()
    for (let round = 0; round < times; round += 1) for (const command of commands) judgeCommand(command, context)
    return (performance.now() - startedAt) / 1000
  }
  play(Math.ceil(rounds / 5))
  const seconds = play(rounds)
  const slowest = commands
    .map((command) => {
      const startedAt = performance.now()
      judgeCommand(command, context)
      return { command, ms: performance.now() - startedAt }
    })
    .sort((a, b) => b.ms - a.ms)[0]
  report('judge', {
    'distinct commands': commands.length,
    judgements: rounds * commands.length,
    seconds: Number(seconds.toFixed(2)),
    'judgements a second (more than 20,000)': Math.round((rounds * commands.length) / seconds),
    'slowest single command (ms)': Number((slowest?.ms ?? 0).toFixed(2)),
  })
}
