import { parseTime } from '../domain/format.ts'
import { type RulingDifference, replay } from '../safety/replay.ts'
import { loadSql } from '../safety/sql/inspect.ts'
import { toolFacts } from '../tools/registry.ts'
import type { ApiClient } from './api.ts'
import type { CliCommand, ConnectionOptions } from './connection.ts'
import { CommandFailed } from './exit-codes.ts'
import { type ApiIncident, apiIncident, listAll } from './read-api.ts'
import { readAllEvents, readBodies } from './read-events.ts'
import { addSitePolicyCommands } from './site-policy.ts'
import { replayUnder } from './site-policy-replay.ts'
import { formatTable } from './ui/table.ts'
import { inert, print, printJson, printNote } from './ui/terminal.ts'

type Options = ConnectionOptions & { incident?: string; since?: string; file?: string; each?: true }

export function addPolicyCommand(program: CliCommand): void {
  const parent = program
    .command('policy')
    .description('the rules that judge calls')
    .addHelpText('after', '\nExample:\n  nightshift policy replay --since 2026-11-01')
  parent
    .command('replay')
    .description('judge stored calls again with the rules of this version, and show what differs')
    .option('--incident <id>', 'only this incident, such as inc_…')
    .option('--since <time>', 'incidents opened since this time, such as 2026-11-21 or 2026-11-21T02:00:00Z')
    .option('--file <file>', 'with this site policy instead of the policy in force at that time')
    .option('--each', 'with --file: list every policy decision that differs, instead of counts by rule')
    .connected(
      '\nExample:\n  nightshift policy replay --since 2026-11-01\n\nExits with 1 when a verdict differs. With --file the command shows what that site policy would have decided about the same calls, and exits with 0.',
    )
    .calls(async (api, options: Options) => {
      await loadSql()
      if (options.file !== undefined)
        return await replayUnder(api, await selectIncidents(api, options), options.file, options)
      const incidents = await selectIncidents(api, options)
      const total = { incidents: incidents.length, judged: 0, unrepeatable: 0 }
      const differences: ({ incidentId: string } & RulingDifference)[] = []
      for (const incident of incidents) {
        const events = await readAllEvents(api, incident.id)
        const report = replay(events, toolFacts, incident.resource, await readBodies(api, incident.id, events))
        total.judged += report.judged
        total.unrepeatable += report.unrepeatable
        differences.push(...report.differences.map((each) => ({ incidentId: incident.id, ...each })))
      }
      if (options.json) printJson({ ...total, differences })
      else printReport(total, differences)
      if (differences.some(({ was, is }) => was.verdict !== is.verdict)) throw new CommandFailed('error', '')
    })
  addSitePolicyCommands(parent)
}

async function selectIncidents(api: ApiClient, { incident, since }: Options): Promise<ApiIncident[]> {
  if (incident) return [apiIncident.parse(await api.get(`/api/v1/incidents/${encodeURIComponent(incident)}`))]
  const path = '/api/v1/incidents?limit=200'
  if (!since) return await listAll(api, path, apiIncident)
  const sinceMs = parseTime(since)
  if (Number.isNaN(sinceMs))
    throw new CommandFailed('usage', `--since ${inert(since)} is not a time on a day that exists: write 2026-11-21.`)
  return await listAll(api, `${path}&since=${new Date(sinceMs).toISOString()}`, apiIncident)
}

function printReport(
  total: { incidents: number; judged: number; unrepeatable: number },
  differences: ({ incidentId: string } & RulingDifference)[],
): void {
  if (differences.length > 0) {
    const rows = differences.map(({ incidentId, seq, tool, was, is }) => [
      inert(incidentId),
      String(seq),
      inert(tool),
      `${was.verdict} ${was.code}`,
      `${is.verdict} ${is.code}`,
    ])
    print(formatTable(['INCIDENT', 'ROW', 'TOOL', 'THEN', 'NOW'], rows, 2))
  }
  printNote(
    `${total.judged} policy decisions in ${total.incidents} incidents checked again: ${differences.length} differ now.` +
      (total.unrepeatable > 0
        ? ` ${total.unrepeatable} cannot be repeated, because the data of these decisions is not kept.`
        : ''),
  )
}
