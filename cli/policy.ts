import type { IncidentEvent } from '../domain/event.ts'
import { parseTime } from '../domain/format.ts'
import { bodiesToReplay, type RulingDifference, replay } from '../safety/replay.ts'
import { loadSql } from '../safety/sql/inspect.ts'
import { toolFacts } from '../tools/registry.ts'
import { type ApiClient, ApiProblem } from './api.ts'
import type { CliCommand, ConnectionOptions } from './connection.ts'
import { CommandFailed } from './exit-codes.ts'
import { type ApiIncident, apiIncident, listAll, parseEvent } from './read-api.ts'
import { addSitePolicyCommands } from './site-policy.ts'
import { replayUnder } from './site-policy-replay.ts'
import { formatTable } from './ui/table.ts'
import { inert, print, printJson, printNote } from './ui/terminal.ts'

type Options = ConnectionOptions & { incident?: string; since?: string; file?: string; each?: true }

export function addPolicyCommand(program: CliCommand): void {
  const parent = program
    .command('policy')
    .description('the rules that decide what a call becomes')
    .addHelpText('after', '\nExample:\n  nightshift policy replay --since 2026-11-01')
  parent
    .command('replay')
    .description('judge stored calls again with the rules of this version, and show what differs')
    .option('--incident <id>', 'only this one, as inc_…')
    .option('--since <time>', 'incidents opened since then, as 2026-11-21 or 2026-11-21T02:00:00Z')
    .option('--file <file>', 'under this policy of the site instead of the one in force then')
    .option('--each', 'with --file: list every ruling that differs, instead of counting them by rule')
    .connected(
      '\nExample:\n  nightshift policy replay --since 2026-11-01\n\nExits with 1 when a verdict differs. With --file it shows what that policy of the site would have decided about the same calls, and exits with 0.',
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

const eventsPerPage = 200

/** The whole log, page by page: a part of it would give another state. */
export async function readAllEvents(api: ApiClient, id: string): Promise<IncidentEvent[]> {
  const events: IncidentEvent[] = []
  for (;;) {
    const from = `limit=${eventsPerPage}&after=${events.at(-1)?.seq ?? 0}`
    const path = `/api/v1/incidents/${encodeURIComponent(id)}/events?${from}`
    const { items } = (await api.get(path)) as { items: unknown[] }
    events.push(...items.map(parseEvent))
    if (items.length < eventsPerPage) return events
  }
}

/** The stored bodies that the replay needs, by digest. Leaves out deleted ones. */
export async function readBodies(
  api: ApiClient,
  id: string,
  events: readonly IncidentEvent[],
): Promise<Map<string, string>> {
  const bodies = new Map<string, string>()
  for (const digest of bodiesToReplay(events, toolFacts)) {
    try {
      const answer = await api.get(`/api/v1/incidents/${encodeURIComponent(id)}/bodies/${digest}`)
      bodies.set(digest, (answer as { text: string }).text)
    } catch (error) {
      if (!(error instanceof ApiProblem) || error.problem.status !== 404) throw error
    }
  }
  return bodies
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
    `${total.judged} rulings of ${total.incidents} incidents checked again: ${differences.length} differ now.` +
      (total.unrepeatable > 0 ? ` ${total.unrepeatable} cannot be repeated, because their data is not kept.` : ''),
  )
}
