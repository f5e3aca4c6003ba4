import { z } from 'zod'
import { formatCount, formatNumber } from '../domain/format.ts'
import type { InventoryKind } from '../domain/kinds.ts'
import { shownPrompt } from '../domain/prompt.ts'
import { type CliCommand, type ConnectionOptions, connect } from './connection.ts'
import { parseKind } from './knowledge.ts'
import { inert, paint, print, printJson } from './ui/terminal.ts'

const promptShown = shownPrompt
  .extend({ tools: z.array(z.looseObject({ function: z.looseObject({ name: z.string() }) })) })
  .loose()

type PromptOptions = ConnectionOptions & { incident?: string; type?: string; kind?: InventoryKind; protocol: string }

export function addPromptCommand(program: CliCommand): void {
  const parent = program
    .command('prompt')
    .description('what the model reads about this site and an incident')
    .addHelpText('after', '\nExample:\n  nightshift prompt show --type disk_pressure --kind node')
  parent
    .command('show')
    .description('the prompt, the tools and the runbook of a first turn, with their sizes')
    .option('--incident <id>', 'the stored prompt of its newest attempt')
    .option('--type <type>', 'the prompt for an incident of this type')
    .option('--kind <kind>', 'on a resource of this kind', parseKind)
    .option('--protocol <name>', 'native or json', 'native')
    .connected('\nExample:\n  nightshift prompt show --type host_down --kind host')
    .action(async ({ incident, type, kind, protocol, ...options }: PromptOptions, command: CliCommand) => {
      if (incident !== undefined && (type !== undefined || kind !== undefined))
        command.error('error: --incident has its own type and kind: leave out --type and --kind')
      const query = new URLSearchParams({ ...(type && { type }), ...(kind && { kind }), protocol })
      const path = incident === undefined ? `/prompt?${query}` : `/incidents/${encodeURIComponent(incident)}/prompt`
      const shown = promptShown.parse(await connect(options).api.get(`/api/v1${path}`))
      if (options.json) printJson(shown)
      else printPrompt(shown)
    })
}

function printPrompt({ system, tools, more, context, runbooks, bytes }: z.infer<typeof promptShown>): void {
  const part = (head: string, size: number, text: string) => {
    print(paint('bold', `── ${head}, ${formatNumber(size)} bytes`))
    print(`${inert(text, { lines: true })}\n`)
  }
  part('system prompt', bytes.system, system)
  part(formatCount(tools.length, 'tool'), bytes.tools, tools.map((tool) => tool.function.name).join(', '))
  if (more.length > 0) print(`more_tools adds: ${inert(more.join(', '))}\n`)
  if (context !== null) part('context', bytes.context, context)
  if (runbooks !== null) part('runbooks', bytes.runbooks, runbooks)
  print(`system prompt and tools: ${formatNumber(bytes.first)} bytes`)
}
