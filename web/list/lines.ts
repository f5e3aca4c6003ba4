import type { ListedIncident } from '../../domain/incident-detail.ts'

export type GroupedBy = 'cause' | 'resource' | 'alert'

/** Incidents on one page of the list that have something in common, with a row for all of them. */
export type IncidentGroup = {
  by: GroupedBy
  members: ListedIncident[]
  /**
   * The incident that is investigated first. Null for an incident outside of the group, or none
   * chosen yet.
   */
  leader: ListedIncident | null
  /** The worst severity in the group. */
  severity: ListedIncident['severity']
  /** The start of the oldest incident. */
  since: string
  isOpen: boolean
}

/** A row of the list: an incident, alone or indented below its group, or a group. */
export type ListLine = { id: string; incident: ListedIncident; group: IncidentGroup | null; isSetIn: boolean }

const ranks = { critical: 0, warning: 1, info: 2 }

/**
 * Makes the rows for a page of incidents. A group is at the place of its newest incident, and
 * covers only this page. A single incident is not a group. `turned`: groups that a person opened or
 * folded; others are folded if all their incidents are closed.
 */
export function toLines(
  items: readonly ListedIncident[],
  by: GroupedBy | null,
  turned: ReadonlyMap<string, boolean> = new Map(),
): ListLine[] {
  const plain = (incident: ListedIncident, isSetIn = false) => ({ id: incident.id, incident, group: null, isSetIn })
  if (by === null) return items.map((incident) => plain(incident))
  const groups = Map.groupBy(items, (incident) => keyOf(incident, by) ?? incident.id)
  return [...groups].flatMap(([key, members]): ListLine[] => {
    const [first] = members
    if (!first) return []
    if (members.length === 1) return [plain(first)]
    const group = foldGroup(by, members, turned.get(key))
    const own = { id: key, incident: group.leader ?? first, group, isSetIn: false }
    return group.isOpen ? [own, ...members.map((incident) => plain(incident, true))] : [own]
  })
}

function foldGroup(by: GroupedBy, members: ListedIncident[], turned: boolean | undefined): IncidentGroup {
  const [worst] = members.toSorted((a, b) => ranks[a.severity] - ranks[b.severity])
  return {
    by,
    members,
    leader: (by === 'cause' && members.find(({ role }) => role === 'leader')) || null,
    severity: worst?.severity ?? 'info',
    since: members.reduce((oldest, { createdAt }) => (createdAt < oldest ? createdAt : oldest), '9'),
    isOpen: turned ?? members.some(({ closedAt }) => closedAt === null),
  }
}

/**
 * Returns the group key of an incident. Null for an incident that was never queued, which has no
 * group and depends on nothing.
 */
function keyOf({ groupId, resource, alertName }: ListedIncident, by: GroupedBy): string | null {
  if (by === 'cause') return groupId
  const about = by === 'alert' ? alertName : resource && `${resource.kind}:${resource.id}`
  return `${by}-${encodeURIComponent(about ?? '')}`
}

const order = ['awaiting_approval', 'escalated', 'investigating', 'open', 'resolved', 'cancelled'] as const

/** Counts the states of a group's incidents, those that need a person first. */
export function countStatuses({ members }: IncidentGroup): [ListedIncident['status'], number][] {
  return order.flatMap((status) => {
    const count = members.filter((each) => each.status === status).length
    return count > 0 ? [[status, count] as [ListedIncident['status'], number]] : []
  })
}

/** Names the owners: one name, nobody, or how many incidents have an owner. */
export function sayOwners({ members }: IncidentGroup): string | null {
  const owned = members.flatMap(({ owner }) => owner?.name ?? [])
  if (owned.length === 0) return null
  const isOne = owned.length === members.length && new Set(owned).size === 1
  return isOne ? (owned[0] ?? null) : `${owned.length} of ${members.length}`
}
