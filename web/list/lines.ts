import type { ListedIncident } from '../../domain/incident-detail.ts'

export type GroupedBy = 'cause' | 'resource' | 'alert'

/** Incidents of one page of the list with something in common, and a row's words for all. */
export type IncidentGroup = {
  by: GroupedBy
  members: ListedIncident[]
  /** It is looked into first; null where it is not among these, or none is yet. */
  leader: ListedIncident | null
  /** The worst of them. */
  severity: ListedIncident['severity']
  /** When the oldest of them began. */
  since: string
  isOpen: boolean
}

/** A row of the list: an incident, alone or set in below its group, or a group. */
export type ListLine = { id: string; incident: ListedIncident; group: IncidentGroup | null; isSetIn: boolean }

const ranks = { critical: 0, warning: 1, info: 2 }

/**
 * Rows of a page of incidents. A group stands where its newest incident stood, and only of this
 * page; one alone is no group. `turned`: groups that somebody opened or folded; others are folded
 * when all of it is over.
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
 * Incidents with one key are a group. One that was never queued has no group and depends on
 * nothing: null.
 */
function keyOf({ groupId, resource, alertName }: ListedIncident, by: GroupedBy): string | null {
  if (by === 'cause') return groupId
  const about = by === 'alert' ? alertName : resource && `${resource.kind}:${resource.id}`
  return `${by}-${encodeURIComponent(about ?? '')}`
}

const order = ['awaiting_approval', 'escalated', 'investigating', 'open', 'resolved', 'cancelled'] as const

/** How the incidents of a group stand: what needs a person first. */
export function countStatuses({ members }: IncidentGroup): [ListedIncident['status'], number][] {
  return order.flatMap((status) => {
    const count = members.filter((each) => each.status === status).length
    return count > 0 ? [[status, count] as [ListedIncident['status'], number]] : []
  })
}

/** Their owners: one name, nobody, or how many are owned. */
export function sayOwners({ members }: IncidentGroup): string | null {
  const owned = members.flatMap(({ owner }) => owner?.name ?? [])
  if (owned.length === 0) return null
  const isOne = owned.length === members.length && new Set(owned).size === 1
  return isOne ? (owned[0] ?? null) : `${owned.length} of ${members.length}`
}
