import { alertsOf } from '../db/alerts/alerts.ts'
import type { Db } from '../db/connect.ts'
import { incidentById } from '../db/incidents/incidents.ts'
import { hintLeader } from '../db/incidents/queue.ts'
import { neighboursOf } from '../db/inventory/resources.ts'
import { eventsOf } from '../db/log/events.ts'
import type { Incident } from '../domain/incident.ts'
import { type IncidentTerms, inTermsOf, type LeaderLooks } from '../domain/leader-look.ts'
import { decidingLooks } from '../model/deciding-looks.ts'
import { renderLeaderHint } from '../model/hint.ts'

type LeaderHint = { from: string; text: string; looks: LeaderLooks | null }

/** Builds the hint for a follower incident: what the leader found. Null without a repair. */
export async function leaderHint(db: Db, incident: Incident): Promise<LeaderHint | null> {
  if (incident.role !== 'follower' || !incident.groupId) return null
  const leaderId = await hintLeader(db, incident.groupId)
  const leader = leaderId ? await incidentById(db, leaderId) : null
  if (!leader) return null
  const events = await eventsOf(db, leader.id, { attempt: leader.attempt })
  const decided = decidingLooks(events, leader.attempt)
  const looks = inTermsOf(decided, await termsOf(db, leader), await termsOf(db, incident))
  const text = renderLeaderHint(leader, events, looks)
  const isAny = looks && looks.before.length + looks.after.length > 0
  return text === null ? null : { from: leader.id, text, looks: isAny ? looks : null }
}

/**
 * Lists the values of this incident that may stand for names in the leader's calls: the resource,
 * its neighbours, the labels of the first alert.
 */
async function termsOf(db: Db, { id, resource }: Incident): Promise<IncidentTerms> {
  const [alert] = await alertsOf(db, id)
  const near = resource ? await neighboursOf(db, resource) : []
  return { incidentId: id, resource, near, labels: alert?.labels ?? {} }
}
