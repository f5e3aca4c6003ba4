import { z } from 'zod'
import { listedUndos, shownUndo } from '../domain/undo-answer.ts'
import { type ActOptions, carryOut, declareAct } from './act.ts'
import type { ApiClient } from './api.ts'
import { type CliCommand, commandLine } from './connection.ts'
import { CommandFailed } from './exit-codes.ts'
import { inert, paint, print, printJson, printNote } from './ui/terminal.ts'

type UndoOptions = ActOptions & { wrong?: true; dryRun?: true }
type Shown = z.infer<typeof shownUndo>

/** `nightshift undo`: undoes one write call, if nothing has changed since. */
export function addUndoCommand(program: CliCommand): void {
  const command = program
    .command('undo')
    .description('undo one write, if its tool has an undo and nothing has changed since')
    .argument('<write>', 'the key of the write, or inc_… if that incident has only one write')
    .option('--dry-run', 'only show what would be done, and whether anything has changed since the write')
    .option('--wrong', 'say that the write was wrong: its tool loses trust in incidents of this type')
  declareAct(command, 'nightshift undo inc_01k… --reason "it was the wrong node"', 'optional').calls(
    async (api, named: string, options: UndoOptions) => {
      const key = named.includes(':') ? named : await findKey(api, named)
      const path = `/api/v1/effects/${encodeURIComponent(key)}/undo`
      const shown = shownUndo.parse(await api.get(path))
      if (options.dryRun && options.json) return printJson(shown)
      if (options.dryRun) return printShown(shown)
      const { refused, undo } = shown
      if (!options.reason)
        throw new CommandFailed('usage', 'Give a reason: --reason "…". The reason is recorded in the log.')
      // Sends even an undo that is refused, because the API records its refusal as a row.
      const summary = undo ? `Undo ${inert(shown.said)}` : inert(shown.said)
      const told = refused ? [refused.detail] : undo ? [describeCall(shown), shown.look?.observed ?? ''] : []
      const body = options.wrong ? { wrong: true } : {}
      await carryOut(api, { path, body, summary, told }, { ...options, reason: options.reason })
    },
  )
}

/**
 * Finds the only write of an incident that can be undone. If there are several, a person has to
 * name one.
 */
async function findKey(api: ApiClient, incident: string): Promise<string> {
  const { items } = listedUndos.parse(await api.get(`/api/v1/incidents/${encodeURIComponent(incident)}/undo`))
  const open = items.filter(({ refused }) => refused === null)
  const [only] = open.length > 0 ? open : items
  if (only && (open.length === 1 || items.length === 1)) return only.key
  if (items.length === 0) throw new CommandFailed('notFound', `${inert(incident)} has no write: nothing to undo.`)
  const rows = items.map(({ key, said, refused }) => `  ${key}\n    ${said}${refused ? `: ${refused.detail}` : ''}`)
  const which = open.length > 1 ? `${open.length} writes that can be undone` : 'no write that can be undone'
  throw new CommandFailed(
    'conflict',
    inert(`${incident} has ${which}. Name one of them:\n${rows.join('\n')}`),
    `"${commandLine('undo KEY --reason "…"')}"`,
  )
}

function describeCall({ undo }: Shown): string {
  if (!undo) return ''
  const words = Object.entries(undo.arguments).map(([name, value]) => `${name} ${say(value)}`)
  return `${undo.tool}: ${words.join(', ')}`
}

const moved = z.object({ vm: z.string(), from: z.string(), to: z.string() })

/** Formats a move of a plan, such as `vm-1 from host-a to host-b`. */
function say(value: unknown): string {
  if (Array.isArray(value)) return value.map(say).join(', ')
  const { data } = moved.safeParse(value)
  if (data) return `${data.vm} from ${data.from} to ${data.to}`
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function printShown(shown: Shown): void {
  const { said, undo, look, refused } = shown
  print(inert(said))
  if (undo) print(`  ${paint('bold', 'would be undone by')} ${inert(describeCall(shown))}`)
  if (look) print(`  ${inert(look.observed)}`)
  if (refused) throw new CommandFailed('conflict', inert(refused.detail))
  printNote('Nothing was done.')
}
