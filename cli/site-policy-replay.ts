import type { IncidentEvent } from '../domain/event.ts'
import type { SiteDecisions } from '../domain/site-decision.ts'
import { type SiteCallToExplain, siteExplanation } from '../domain/site-policy-state.ts'
import { type RulingDifference, replay } from '../safety/replay.ts'
import { readSitePolicy } from '../safety/site/read.ts'
import { toolFacts } from '../tools/registry.ts'
import type { ApiClient } from './api.ts'
import type { ConnectionOptions } from './connection.ts'
import { readAllEvents, readBodies } from './policy.ts'
import type { ApiIncident } from './read-api.ts'
import { readPolicyText } from './site-policy.ts'
import { formatTable } from './ui/table.ts'
import { inert, print, printJson, printNote } from './ui/terminal.ts'

type Verdicts = { run: number; ask: number; refuse: number }
type Row = { incidentId: string } & RulingDifference

/** As many calls as one request explains. */
const perRequest = 200

/**
 * What the stored calls would have become under a policy of the site. Targets, times and all that the kernel weighed are those of then; names and
 * labels are those that the registry has now.
 */
export async function replayUnder(
  api: ApiClient,
  incidents: readonly ApiIncident[],
  file: string,
  options: ConnectionOptions,
): Promise<void> {
  const text = readPolicyText(file).toString('utf8')
  const before: Verdicts = { run: 0, ask: 0, refuse: 0 }
  const after: Verdicts = { run: 0, ask: 0, refuse: 0 }
  const rows: Row[] = []
  for (const incident of incidents) {
    const events = await readAllEvents(api, incident.id)
    const decided = await decideUnder(api, incident, events, text)
    const bodies = await readBodies(api, incident.id, events)
    const report = replay(events, toolFacts, incident.resource, bodies, ({ seq }) => decided.get(seq))
    const changed = new Map(report.differences.map((each) => [each.seq, each]))
    for (const { seq, metadata } of judgedOf(events)) {
      before[metadata.verdict] += 1
      after[changed.get(seq)?.is.verdict ?? metadata.verdict] += 1
    }
    rows.push(...report.differences.map((each) => ({ incidentId: incident.id, ...each })))
  }
  const total = { incidents: incidents.length, before, after, differences: rows }
  if (options.json) return printJson(total)
  printUnder(total)
  const read = readSitePolicy(text, toolFacts, null)
  if (read.ok && read.policy.rules.some(({ silenced }) => silenced))
    printNote('Silences of that time are not kept: rules with silenced fit nothing here.')
}

const judgedOf = (events: readonly IncidentEvent[]) =>
  events.filter((event) => event.kind === 'call_judged') as IncidentEvent<'call_judged'>[]

async function decideUnder(
  api: ApiClient,
  { type }: ApiIncident,
  events: readonly IncidentEvent[],
  text: string,
): Promise<Map<number, SiteDecisions>> {
  const asked = judgedOf(events).flatMap(({ seq, metadata: { tool, basis } }) => {
    if (!basis || !toolFacts.has(tool)) return []
    const targets = basis.prepared?.ok ? basis.prepared.targets : []
    const known = targets.filter(({ kind }) => kind !== 'incident' && kind !== 'proposal')
    return [{ seq, call: { tool, type, targets: known as SiteCallToExplain['targets'], at: basis.at } }]
  })
  const decided = new Map<number, SiteDecisions>()
  for (let from = 0; from < asked.length; from += perRequest) {
    const part = asked.slice(from, from + perRequest)
    const calls = part.map(({ call }) => call)
    const { items } = (await api.post('/api/v1/policy/explain', { calls, text })) as { items: unknown[] }
    part.forEach(({ seq }, at) => {
      const { write, look } = siteExplanation.parse(items[at])
      decided.set(seq, { write, look } as SiteDecisions)
    })
  }
  return decided
}

function printUnder({
  incidents,
  before,
  after,
  differences,
}: {
  incidents: number
  before: Verdicts
  after: Verdicts
  differences: Row[]
}): void {
  if (differences.length > 0) {
    const rows = differences.map(({ incidentId, seq, tool, was, is }) => [
      inert(incidentId),
      String(seq),
      inert(tool),
      `${was.verdict} ${was.code}`,
      `${is.verdict} ${is.code}`,
    ])
    print(formatTable(['INCIDENT', 'ROW', 'TOOL', 'THEN', 'UNDER THE FILE'], rows, 2))
  }
  const words = ({ run, ask, refuse }: Verdicts) => `${run} run, ${ask} asked, ${refuse} refused`
  printNote(`Of ${incidents} incidents: ${words(before)} → ${words(after)}; ${differences.length} rulings differ.`)
}
