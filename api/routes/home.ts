import { z } from '@hono/zod-openapi'
import { readHome } from '../../db/incidents/home-page.ts'
import { searchAll } from '../../db/incidents/search.ts'
import { home, searchAnswer } from '../../domain/incident-detail.ts'
import { endpoint } from '../http/endpoint.ts'
import { moment } from '../http/moments.ts'
import { incidentExample } from './examples.ts'

/** Hours of a night, if the caller names no beginning. */
const nightHours = 12
const tag = 'incidents'

const {
  id,
  title,
  alertName,
  resource,
  severity,
  status,
  category,
  outcome,
  resolution,
  owner,
  closedBy,
  alerts,
  createdAt,
  closedAt,
} = incidentExample
const shown = {
  id,
  title,
  resource,
  severity,
  status,
  category,
  outcome,
  resolution,
  owner,
  closedBy,
  alerts,
  createdAt,
  closedAt,
}
const line = { type: incidentExample.type, severity, count: 1, since: createdAt, incident: shown }

const homeEndpoint = endpoint({
  method: 'get',
  path: '/home',
  permission: 'read',
  tag,
  summary: 'Overview of the night: what needs the caller, what is in progress, what is done',
  description:
    '`since` is the start of the night (default 12 hours ago). `needsYou`: waiting approvals, incidents of the caller, escalated incidents without an owner, and open incidents that no rule lets the agent investigate. More than three incidents of one type are one line with their `count`; `incidents` counts all of them.',
  query: z.object({ since: moment.optional() }),
  answer: home,
  example: {
    since: '2026-11-20T22:00:00Z',
    isFresh: false,
    tonight: {
      incidents: 12,
      resolved: 9,
      closed: 11,
      resolvedAlone: 7,
      unproven: 0,
      escalated: 1,
      medianSeconds: 41,
      failedRepairs: 0,
      tokens: 182_000,
      dollars: 0.12,
    },
    needsYou: {
      incidents: 1,
      lines: [
        {
          ...line,
          need: 'approval',
          category: null,
          approval: {
            id: 'apr_01kam3x0q2v8d5t7w9y1b3c5e7',
            summary: 'start 3 VMs, to host-osl-2',
            risk: 'high',
            expiresAt: '2026-11-21T02:46:00.000000Z',
          },
        },
      ],
    },
    inProgress: { incidents: 50, lines: [{ ...line, count: 50, investigating: 5, queued: 45, owned: 0 }] },
    done: { incidents: 1, lines: [{ ...line, outcome: 'repaired', seconds: 4 }] },
  },
  async run({ scope, query: { since } }) {
    return await readHome(scope, since ?? new Date(Date.now() - nightHours * 3_600_000).toISOString())
  },
})

const searchEndpoint = endpoint({
  method: 'get',
  path: '/search',
  permission: 'read',
  tag,
  summary: 'Searches incidents, resources and rows of the log',
  description:
    '`q` matches parts of words in titles, resources and types. In alerts it matches a whole name, fingerprint, label value or pair (`env=prod`, `{job="node"}`). In the log each word matches the beginning of a word: `OOM check` finds "OOMKilled in checkout". The id of an incident or approval finds its incident. `isPartial`: too many rows of the log match to search all in time; add another word.',
  query: z.object({ q: z.string().max(200).trim().min(1) }),
  answer: searchAnswer,
  example: {
    incidents: [{ id, title, alertName, resource, status, severity, createdAt }],
    resources: [{ kind: 'host', id: 'host-osl-1' }],
    log: [{ incidentId: id, title, seq: 10, detail: 'host-osl-1 is down since 01:45', at: createdAt }],
    isPartial: false,
  },
  run: ({ scope, query: { q } }) => searchAll(scope, q),
})

export const homeRoutes = [homeEndpoint, searchEndpoint]
