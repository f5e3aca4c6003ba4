import { z } from 'zod'
import { listedUndos, shownUndo } from '../domain/undo-answer.ts'
import { type ActOptions, carryOut, declareAct } from './act.ts'
import type { ApiClient } from './api.ts'
import { type CliCommand, commandLine } from './connection.ts'
import { CommandFailed } from './exit-codes.ts'
import { inert, paint, print, printJson, printNote } from './ui/terminal.ts'

type UndoOptions = ActOptions & { wrong?: true; dryRun?: true }
type Shown = z.infer<typeof shownUndo>

/** `nightshift undo`: takes one write back, while all is as that write left it. */
export function addUndoCommand(program: CliCommand): void {
  const command = program
    .command('undo')
    .description('take one write back, if its tool declares an undo and nobody has changed what the write left')
    .argument('<write>', 'the key of the write, or inc_… if that incident has only one write')
    .option('--dry-run', 'only show what would be done, and whether anybody has changed what the write left')
    .option('--wrong', 'say that the write was wrong: its tool loses trust in incidents of this type')
  declareAct(command, 'nightshift undo inc_01k… --reason "it was the wrong node"', 'optional').calls(
    async (api, named: string, options: UndoOptions) => {
      const key = named.includes(':') ? named : await findKey(api, named)
      const path = `/api/v1/effects/${encodeURIComponent(key)}/undo`
      const shown = shownUndo.parse(await api.get(path))
      if (options.dryRun && options.json) return printJson(shown)
      if (options.dryRun) return printShown(shown)
      const { refused, undo } = shown
      if (!options.reason) throw new CommandFailed('usage', 'Say why: --reason "…". It is part of the log.')
      // Refused by the API too, which leaves the row of it.
      const summary = undo ? `Undo ${inert(shown.said)}` : inert(shown.said)
      const told = refused ? [refused.detail] : undo ? [describeCall(shown), shown.look?.observed ?? ''] : []
      const body = options.wrong ? { wrong: true } : {}
      await carryOut(api, { path, body, summary, told }, { ...options, reason: options.reason })
    },
  )
}

/** The one write of an incident that can be taken back; of several a person names one. */
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
    inert(`${incident} has ${which}. Name one:\n${rows.join('\n')}`),
    `"${commandLine('undo KEY --reason "…"')}"`,
  )
}

function describeCall({ undo }: Shown): string {
  if (!undo) return ''
  const words = Object.entries(undo.arguments).map(([name, value]) => `${name} ${say(value)}`)
  return `${undo.tool}: ${words.join(', ')}`
}

const moved = z.object({ vm: z.string(), from: z.string(), to: z.string() })

/** A move of a plan reads as `vm-1 from host-a to host-b`. */
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
