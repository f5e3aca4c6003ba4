import { z } from '@hono/zod-openapi'
import { changeFollowUp, closeFollowUp, type FollowUpRefusal } from '../../db/incidents/follow-ups.ts'
import { listFollowUps } from '../../db/incidents/shift.ts'
import { viewShift } from '../../db/outbox/shift-cards.ts'
import type { Scope } from '../../db/scope.ts'
import { type FollowUp, followUp, shiftView } from '../../domain/shift.ts'
import { requirePerson } from '../deps.ts'
import { lostDuties } from '../heartbeat.ts'
import { writtenText } from '../http/body.ts'
import { endpoint } from '../http/endpoint.ts'
import { calendarDay } from '../http/moments.ts'
import { notFound, Problem } from '../http/problem.ts'
import { lookAtParts } from '../parts.ts'
import { incidentExample, incidentId } from './examples.ts'
import { incidentParams } from './incidents.ts'

const tag = 'incidents'

const example: FollowUp = {
  incidentId,
  title: incidentExample.title,
  owner: 'anna',
  group: null,
  dueOn: '2026-12-02',
  isOverdue: false,
  createdAt: '2026-11-27T02:12:17.000000Z',
  closedAt: null,
  closedBy: null,
}

const times = { since: '2026-11-28T21:00:00.000000Z', until: '2026-11-29T06:00:00.000000Z' }
const line = (text: string, path: string | null) => ({ text, path, url: null })

const shiftEndpoint = endpoint({
  method: 'get',
  path: '/shift',
  permission: 'read',
  tag,
  summary: 'The morning card, the hand-over and the open follow-ups',
  description:
    'The morning card covers the current night (`page.night`), or the last one. The hand-over begins at the last time in `hand_over.at`, or eight hours ago. `path` is the page of a line, below the public address.',
  answer: shiftView,
  example: {
    morning: {
      ...times,
      title: 'Morning of 2026-11-29: 1 question waits, 4 repaired',
      lines: [
        line(
          'Waits for anna until 09:10 UTC: start 3 VMs (host-osl-1 is down)',
          'approvals/apr_01kam3x0q2v8d5t7w9y1b3c5e7',
        ),
      ],
    },
    handOver: {
      ...times,
      title: 'Hand-over of 2026-11-29, 06:00 UTC',
      lines: [
        line('Open: nothing', null),
        line('Waits: nothing', null),
        line('Watched: nothing', null),
        line('Nightshift: no part has failed', null),
        line('Look first at: nothing waits', null),
      ],
    },
    followUps: { count: 1, first: [example] },
  },
  async run({ scope }, deps) {
    const lost = lostDuties(await lookAtParts(scope, deps))
    return await viewShift(
      scope,
      lost.map(({ name }) => name),
    )
  },
})

const listEndpoint = endpoint({
  method: 'get',
  path: '/follow-ups',
  permission: 'read',
  tag,
  summary: 'Open follow-ups of incidents that ended as mitigated, the longest due first',
  description: '`count` is the number of all open follow-ups; `first` has the first hundred.',
  answer: shiftView.shape.followUps,
  example: { count: 1, first: [example] },
  run: ({ scope }) => listFollowUps(scope),
})

const refusals: Record<FollowUpRefusal, (id: string) => Problem> = {
  none: (id) => notFound(`follow-up of incident ${id}`),
  closed: () => new Problem(409, 'CONFLICT', 'This follow-up is closed.'),
  'unknown owner': () => {
    const message = 'is not a user who may sign in: "nightshift operators list" lists the users'
    return new Problem(422, 'INVALID', `owner ${message}.`, {
      fields: { errors: [{ in: 'body', field: 'owner', message }] },
    })
  },
}

async function answer(scope: Scope, id: string, refusal: FollowUpRefusal | null): Promise<FollowUp> {
  if (refusal !== null) throw refusals[refusal](id)
  const [found] = (await listFollowUps(scope, { incidentId: id })).first
  if (!found) throw refusals.none(id)
  return found
}

const readEndpoint = endpoint({
  method: 'get',
  path: '/follow-ups/{id}',
  permission: 'read',
  tag,
  summary: 'The follow-up of an incident, open or closed',
  params: incidentParams,
  answer: followUp,
  example,
  problems: [404],
  run: ({ scope, params: { id } }) => answer(scope, id, null),
})

const changeEndpoint = endpoint({
  method: 'post',
  path: '/follow-ups/{id}',
  permission: 'manage_incident',
  tag,
  summary: 'Gives the follow-up of an incident another owner or date',
  description:
    'Fields that are left out do not change. `owner` is the name of a person, `group` describes several people; one replaces the other. The log gets a row.',
  params: incidentParams,
  body: z.strictObject({
    owner: z.string().min(1).max(100).optional(),
    group: writtenText(1, 100).optional(),
    dueOn: calendarDay.optional(),
  }),
  bodyExample: { owner: 'anna', dueOn: '2026-12-02' },
  answer: followUp,
  example,
  status: 200,
  problems: [404, 409],
  async run({ scope, params: { id }, body, actor, principal }, { db }) {
    const { owner, group, dueOn } = body
    if (owner && group)
      throw new Problem(422, 'INVALID', 'A follow-up has a person or a group as its owner. Name one of the two.')
    if (!owner && !group && !dueOn) throw new Problem(422, 'INVALID', 'Name what changes: an owner, a group or a day.')
    const change = { ...(owner && { owner }), ...(group && { group }), ...(dueOn && { dueOn }) }
    return await answer(scope, id, await changeFollowUp(db, id, change, requirePerson(principal, actor)))
  },
})

const closeEndpoint = endpoint({
  method: 'post',
  path: '/follow-ups/{id}/close',
  permission: 'manage_incident',
  tag,
  summary: 'Closes the follow-up of an incident, with a note about what was done',
  params: incidentParams,
  body: z.strictObject({ note: writtenText(3, 1_000) }),
  bodyExample: { note: 'The disk was replaced.' },
  answer: followUp,
  example: { ...example, closedAt: '2026-12-01T09:00:00.000000Z', closedBy: 'anna' },
  status: 200,
  problems: [404, 409],
  async run({ scope, params: { id }, body: { note }, actor, principal }, { db }) {
    return await answer(scope, id, await closeFollowUp(db, id, note, requirePerson(principal, actor)))
  },
})

export const shiftRoutes = [shiftEndpoint, listEndpoint, readEndpoint, changeEndpoint, closeEndpoint]
