import { readFileSync } from 'node:fs'
import { type CommandContext, type CommandVerdict, judgeCommand } from '../../../safety/command/judge.ts'

/**
 * Rows of `runbooks`, which is read, and of `runbooks-held`, of which only counts are looked at.
 */
export type RunbookRow = { command: string; program: string; source: string; expected: string; why?: string }

export const rowsOf = (file: string): RunbookRow[] =>
  JSON.parse(readFileSync(new URL(`../../data/commands/${file}.json`, import.meta.url), 'utf8'))

const context: CommandContext = {
  knownHosts: new Set(['db1', '10.0.0.5']),
  knownNames: new Set(['web', 'web-0', '101']),
}

export const shouldAsk = ({ expected }: RunbookRow) => expected === 'needs-approval'
export const runsUnasked = ({ command }: RunbookRow) => judgeCommand(command, context).verdict === 'run'

/** As in an incident: the names in it were looked up. */
export function judgeOnceLookedUp({ command }: RunbookRow): CommandVerdict {
  const knownNames = new Set(context.knownNames)
  for (;;) {
    const judged = judgeCommand(command, { ...context, knownNames })
    const { code, token } = judged
    if (code !== 'UNKNOWN_NAME' || token === null || knownNames.has(token)) return judged
    knownNames.add(token)
  }
}

/** And code puts in the bounded or safer form, once. */
export function runsOnceLookedUp(row: RunbookRow): boolean {
  const { verdict, rewrite } = judgeOnceLookedUp(row)
  return verdict === 'run' || rewrite !== null
}
