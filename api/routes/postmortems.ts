import { z } from '@hono/zod-openapi'
import { alertsOf } from '../../db/alerts/alerts.ts'
import { listApprovals } from '../../db/approvals/find.ts'
import { postmortemEdits, writePostmortem } from '../../db/incidents/postmortems.ts'
import { eventsOf } from '../../db/log/events.ts'
import type { Scope } from '../../db/scope.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { formatCsv } from '../../domain/format.ts'
import type { Incident } from '../../domain/incident.ts'
import {
  foldPostmortem,
  type Postmortem,
  type PostmortemSection,
  postmortem,
  postmortemMarkdown,
} from '../../domain/postmortem.ts'
import { requirePerson } from '../deps.ts'
import { endpoint } from '../http/endpoint.ts'
import { Problem } from '../http/problem.ts'
import { incidentExample } from './examples.ts'
import { incidentParams, requireIncident } from './incidents.ts'
import { example, tag } from './reports.ts'

const maxSectionCharacters = 10_000

const writtenSection = z.string().min(1).max(maxSectionCharacters).regex(/\S/).nullable()

async function readPostmortem(scope: Scope, incident: Incident, events: IncidentEvent[]): Promise<Postmortem> {
  return foldPostmortem(incident, events, await postmortemEdits(scope, incident.id))
}

const readPostmortemEndpoint = endpoint({
  method: 'get',
  path: '/incidents/{id}/postmortem',
  permission: 'read',
  tag,
  summary: 'The postmortem of an incident, with edits of people',
  description:
    'Code builds each section from the rows of the log: `sentences` with the numbers of their rows. `edited` is the text that a person wrote instead. As a file: `export?format=md`.',
  params: incidentParams,
  answer: postmortem,
  example,
  problems: [404],
  async run({ scope, params: { id } }, deps) {
    const incident = await requireIncident(scope, id)
    return await readPostmortem(scope, incident, await eventsOf(deps.db, id))
  },
})

const writePostmortemEndpoint = endpoint({
  method: 'post',
  path: '/incidents/{id}/postmortem',
  permission: 'record',
  tag,
  summary: 'Writes sections of a postmortem, under the name of the caller',
  description:
    'The text is Markdown; null restores the text from the log. `version` is the version that the caller read: 409 `VERSION_CHANGED` if somebody has edited since, and nothing is stored. The log does not change. Every version is kept with its author and time.',
  params: incidentParams,
  body: z.strictObject({
    version: z.number().int().min(0).max(1_000_000),
    sections: z
      .strictObject({
        summary: writtenSection,
        impact: writtenSection,
        cause: writtenSection,
        done: writtenSection,
        refused: writtenSection,
        questions: writtenSection,
        followUp: writtenSection,
      } satisfies Record<PostmortemSection, typeof writtenSection>)
      .partial()
      .refine((sections) => Object.keys(sections).length > 0, 'names no section')
      .openapi({ minProperties: 1 }),
  }),
  bodyExample: { version: 0, sections: { cause: 'Somebody stopped the replica by hand.' } },
  answer: postmortem,
  example,
  problems: [404, 409],
  async run({ scope, params: { id }, body: { version, sections }, principal, actor }, deps) {
    const incident = await requireIncident(scope, id)
    const { operatorId, name: who } = requirePerson(principal, actor)
    if (!(await writePostmortem(deps.db, id, { seen: version, sections, operatorId, who }))) {
      const newest = (await postmortemEdits(scope, id)).at(-1)
      const now = newest ? `at version ${newest.version}, by ${newest.by}` : 'not edited yet (version 0)'
      const detail = `The postmortem of ${id} is ${now}, and you saw version ${version}. Read the postmortem again, then write.`
      throw new Problem(409, 'VERSION_CHANGED', detail, { fields: { version: newest?.version ?? 0 } })
    }
    return await readPostmortem(scope, incident, await eventsOf(deps.db, id))
  },
})

const exportEndpoint = endpoint({
  method: 'get',
  path: '/incidents/{id}/export',
  permission: 'read',
  tag,
  summary: 'Everything about an incident, as a file',
  description: '`json`: all rows; `csv`: the timeline; `md`: a postmortem.',
  params: incidentParams,
  query: z.object({ format: z.enum(['json', 'csv', 'md']).default('json') }),
  answer: z.looseObject({}),
  example: { incident: incidentExample, events: [], approvals: [], alerts: [] },
  downloads: {
    'text/csv': 'seq,at,attempt,turn,kind,action,actor,detail,metadata,hash\n',
    'text/markdown': '# Disk 96% full\n\n## Summary\n',
  },
  problems: [404],
  async run({ scope, params: { id }, query: { format }, c }, deps) {
    const incident = await requireIncident(scope, id)
    const events = await eventsOf(deps.db, id)
    const download = (type: string, text: string) =>
      c.body(text, 200, {
        'content-type': `${type}; charset=utf-8`,
        'content-disposition': `attachment; filename="${id}.${format}"`,
      })
    if (format === 'csv') return download('text/csv', eventsCsv(events))
    if (format === 'md') {
      const found = await readPostmortem(scope, incident, events)
      const page = deps.publicUrl === null ? null : new URL(`/incidents/${id}`, deps.publicUrl).href
      return download('text/markdown', postmortemMarkdown(found, events, page))
    }
    const approvals = await listApprovals(scope, { incidentId: id }, { before: null, limit: 200 })
    const alerts = await alertsOf(deps.db, id)
    return { incident, events, approvals, alerts: alerts.map(({ raw: _, ...alert }) => alert) }
  },
})

const eventColumns = ['seq', 'at', 'attempt', 'turn', 'kind', 'action', 'actor', 'detail', 'metadata', 'hash'] as const

function eventsCsv(events: IncidentEvent[]): string {
  const lines = events.map((event) =>
    eventColumns.map((column) => (column === 'metadata' ? JSON.stringify(event.metadata) : event[column])),
  )
  return formatCsv([eventColumns, ...lines])
}

/** Routes for the postmortem of an incident, as page and file. */
export const postmortemRoutes = [readPostmortemEndpoint, writePostmortemEndpoint, exportEndpoint]
