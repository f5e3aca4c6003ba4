import { machineKinds } from '../../domain/kinds.ts'
import { parseResourceKey, resourceKey } from '../../domain/registry.ts'
import type { LogSubject } from '../../domain/source.ts'
import { namesOfThing } from '../alerts/active-alerts.ts'
import type { Scope } from '../scope.ts'
import { relationsOf } from './show-resource.ts'

/**
 * Returns the names under which the incident's resource appears in logs, and the labels of its
 * newest alert. Null if the resource writes no logs.
 */
export async function logSubjectOf({ db }: Scope, incidentId: string): Promise<LogSubject | null> {
  const incident = await db
    .selectFrom('incident')
    .select(['resourceKind', 'resourceId'])
    .where('id', '=', incidentId)
    .executeTakeFirst()
  const ref = incident && parseResourceKey(`${incident.resourceKind}:${incident.resourceId}`)
  if (!ref) return null
  const { labels = {} } =
    (await db
      .selectFrom('alert')
      .select('labels')
      .where('incidentId', '=', incidentId)
      .orderBy('startsAt', 'desc')
      .limit(1)
      .executeTakeFirst()) ?? {}
  const { names } = await namesOfThing(db, resourceKey(ref))
  // Puts the id first, in its original spelling, because log labels are case-sensitive.
  const own = [...new Set([ref.id, ...names])].slice(0, maxNames)
  const subject = { machine: [], unit: [], workload: [], alertLabels: labels }
  if (isMachine(ref.kind)) return { ...subject, machine: own }
  if (ref.kind === 'workload') return { ...subject, workload: own }
  const [holder] = (await relationsOf(db, ref)).flatMap(({ from, to }) => {
    const held = from === resourceKey(ref) ? parseResourceKey(to) : null
    return held && isMachine(held.kind) ? [held] : []
  })
  if (!holder) return null
  const machine = [holder.id, ...(await namesOfThing(db, resourceKey(holder))).names]
  return { ...subject, machine: [...new Set(machine)].slice(0, maxNames), unit: own }
}

const maxNames = 6

const isMachine = (kind: string): boolean => (machineKinds as readonly string[]).includes(kind)
