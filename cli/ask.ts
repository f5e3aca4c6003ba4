import type { Command } from 'commander'
import { z } from 'zod'
import { closedStatuses } from '../domain/incident.ts'
import { type ConnectionOptions, connect, withConnectionOptions } from './connection.ts'
import { readIncident } from './core.ts'
import { formatLiveRow } from './demo/tell.ts'
import { CommandFailed } from './exit-code.ts'
import { inert } from './inert.ts'
import { parseSeconds, withTimeout } from './seconds.ts'
import { followIncident } from './stream.ts'
import { print, printJson, printNote } from './terminal.ts'
import { commandLine } from './where.ts'

type AskOptions = ConnectionOptions & { resource?: string; wait: boolean; timeout?: number }

const askAnswer = z
  .union([z.looseObject({ id: z.string() }), z.looseObject({ incidentId: z.string() })])
  .transform((answer) => String('incidentId' in answer ? answer.incidentId : answer.id))

export function addAskCommand(program: Command): void {
  withConnectionOptions(
    program
      .command('ask')
      .description('put a question to the agent; it looks, and answers')
      .argument('<question>', 'in plain words')
      .option('--resource <kind:id>', 'what it is about, as shard:db-osl-1')
      .option('--no-wait', 'do not follow it; print the incident that holds the question')
      .option('--timeout <seconds>', 'give up after this long', parseSeconds),
  )
    .addHelpText('after', '\nExample:\n  nightshift ask "Is db-osl-1 well?" --resource shard:db-osl-1')
    .action(async (question: string, options: AskOptions) => {
      const { api } = connect(options)
      const [kind, id] = options.resource?.split(':') ?? []
      if (options.resource && !(kind && id))
        throw new CommandFailed('usage', '--resource is written as shard:db-osl-1.')
      const body = { question, ...(kind && { resource: { kind, id } }) }
      const incidentId = askAnswer.parse(await api.post('/api/v1/agent', body))
      if (!options.wait) {
        if (options.json) return printJson(await readIncident(api, incidentId))
        return print(incidentId)
      }
      const { createdAt } = await readIncident(api, incidentId)
      await withTimeout(options.timeout, async (signal) => {
        for await (const event of followIncident(api, incidentId, { signal })) {
          // The way there is no part of the answer, and the answer itself is told below.
          const text =
            options.json || ['commented', 'resolved'].includes(event.kind) ? null : formatLiveRow(event, createdAt)
          if (text) printNote(text)
        }
      })
      const incident = await readIncident(api, incidentId)
      if (options.json) printJson(incident)
      else print(inert(incident.resolution ?? `(no answer: ${incident.status})`, { lines: true }))
      if (closedStatuses.includes(incident.status) && incident.status !== 'resolved') {
        throw new CommandFailed(
          'unresolved',
          `Nobody could answer; see "${commandLine(`incidents show ${incidentId}`)}".`,
        )
      }
    })
}
