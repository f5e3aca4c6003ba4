import type { IncidentEvent, Verdict } from '../domain/event.ts'
import type { SiteDecisions } from '../domain/site-decision.ts'
import { type SiteCallToExplain, siteExplanation } from '../domain/site-policy-state.ts'
import { type RulingDifference, replay } from '../safety/replay.ts'
import { readSitePolicy } from '../safety/site/read.ts'
import { toolFacts } from '../tools/registry.ts'
import type { ApiClient } from './api.ts'
import type { ConnectionOptions } from './connection.ts'
import type { ApiIncident } from './read-api.ts'
import { readAllEvents, readBodies } from './read-events.ts'
import { readPolicyText } from './site-policy.ts'
import { formatTable } from './ui/table.ts'
import { inert, print, printJson, printNote } from './ui/terminal.ts'

type Verdicts = { run: number; ask: number; refuse: number }
type Row = { incidentId: string; rule: string | null } & RulingDifference
type Replayed = { before: Verdicts; after: Verdicts; unrepeatable: number; differences: Row[] }

/** The most calls that one request explains. */
const perRequest = 200
/**
 * Number of incidents that are read at the same time. Each incident takes several requests in
 * sequence.
 */
const atOnce = 8

/**
 * Judges stored calls again with a site policy. Targets, times and the facts of the kernel are
 * those stored with the call. Names and labels are those that the registry has now.
 */
export async function replayUnder(
  api: ApiClient,
  incidents: readonly ApiIncident[],
  file: string,
  options: ConnectionOptions & { each?: true; incident?: string },
): Promise<void> {
  const text = readPolicyText(file).toString('utf8')
  const found: Replayed[] = []
  const waiting = [...incidents.entries()]
  const work = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) found[next[0]] = await replayOne(api, next[1], text)
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  const total = {
    incidents: incidents.length,
    before: sum(found.map(({ before }) => before)),
    after: sum(found.map(({ after }) => after)),
    unrepeatable: found.reduce((count, { unrepeatable }) => count + unrepeatable, 0),
    differences: found.flatMap(({ differences }) => differences),
  }
  if (options.json) return printJson(total)
  printUnder(total, options.each === true || options.incident !== undefined)
  const read = readSitePolicy(text, toolFacts, null)
  if (read.ok && read.policy.rules.some(({ silenced }) => silenced))
    printNote('Nightshift keeps no old silences, so rules with "silenced" match nothing in this replay.')
}

async function replayOne(api: ApiClient, incident: ApiIncident, text: string): Promise<Replayed> {
  const events = await readAllEvents(api, incident.id)
  const decided = await decideUnder(api, incident, events, text)
  const bodies = await readBodies(api, incident.id, events)
  const { differences, unrepeatable } = replay(events, toolFacts, incident.resource, bodies, ({ seq }) =>
    decided.get(seq),
  )
  const changed = new Map(differences.map((each) => [each.seq, each]))
  const judged = judgedOf(events)
  return {
    before: count(judged.map(({ metadata }) => metadata.verdict)),
    after: count(judged.map(({ seq, metadata }) => changed.get(seq)?.is.verdict ?? metadata.verdict)),
    unrepeatable,
    differences: differences.map((each) => ({ incidentId: incident.id, rule: ruleOf(each, decided), ...each })),
  }
}

/** Returns the rule of the policy file that decides. Null if the kernel decides. */
function ruleOf({ seq, is }: RulingDifference, decided: ReadonlyMap<number, SiteDecisions>): string | null {
  const { write, look } = decided.get(seq) ?? {}
  return is.code.startsWith('SITE_') ? ((write ?? look)?.rule ?? null) : null
}

function count(verdicts: readonly Verdict[]): Verdicts {
  const counted: Verdicts = { run: 0, ask: 0, refuse: 0 }
  for (const verdict of verdicts) counted[verdict] += 1
  return counted
}

function sum(all: readonly Verdicts[]): Verdicts {
  const total = count([])
  for (const each of all) for (const verdict of ['run', 'ask', 'refuse'] as const) total[verdict] += each[verdict]
  return total
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

type Total = { incidents: number } & Replayed

/**
 * Prints how many policy decisions change, by rule, the largest number first. With `each`, prints
 * every decision that changes.
 */
function printUnder({ incidents, before, after, unrepeatable, differences }: Total, each: boolean): void {
  if (differences.length > 0) print(each ? eachRow(differences) : byRule(differences))
  const words = ({ run, ask, refuse }: Verdicts) => `${run} run, ${ask} asked, ${refuse} refused`
  const judged = before.run + before.ask + before.refuse
  printNote(
    `${judged} policy decisions in ${incidents} incidents.\n  at that time    ${words(before)}\n  with the file   ${words(after)}`,
  )
  printNote(`${differences.length} of these decisions ${differences.length === 1 ? 'differs' : 'differ'}.`)
  if (unrepeatable > 0) printNote(`${unrepeatable} decisions keep their old result, because their data is not kept.`)
  if (!each && differences.length > 0) printNote('--each lists the decisions that differ.')
}

const become = ({ was, is }: Row): [string, string] => [`${was.verdict} ${was.code}`, `${is.verdict} ${is.code}`]

function eachRow(differences: readonly Row[]): string {
  const rows = differences.map((row) => [inert(row.incidentId), String(row.seq), inert(row.tool), ...become(row)])
  return formatTable(['INCIDENT', 'ROW', 'TOOL', 'THEN', 'WITH THE FILE'], rows, 2)
}

function byRule(differences: readonly Row[]): string {
  const groups = Map.groupBy(differences, (row) => JSON.stringify([row.rule, row.tool, ...become(row)]))
  const rows = [...groups.values()]
    .sort((a, b) => b.length - a.length)
    .flatMap((group) => {
      const [first] = group
      if (!first) return []
      const inIncidents = new Set(group.map(({ incidentId }) => incidentId)).size
      return [
        [String(group.length), String(inIncidents), inert(first.tool), ...become(first), inert(first.rule ?? '–')],
      ]
    })
  return formatTable(['DECISIONS', 'INCIDENTS', 'TOOL', 'THEN', 'WITH THE FILE', 'RULE'], rows, 5)
}
