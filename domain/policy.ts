import type { ResourceRef } from './resource.ts'
import type { Risk } from './tool.ts'

/** What the judge weighs besides the log: read in the transaction that writes its ruling, and stored on that row. */
export type Policy = {
  incidentId: string
  resource: ResourceRef | null
  role: 'leader' | 'follower'
  paused: boolean
  /** Configuration's word on this tool: it raises a risk and a number of people, and lowers neither. */
  raised: { risk: Risk | null; required: number }
  /** Names offered for this type of incident; null means all. */
  offered: readonly string[] | null
  /** The incident's resource and its direct neighbours. */
  vicinity: readonly ResourceRef[]
  /** Digests a person denied anywhere in the group. */
  denied: readonly string[]
  /**
   * The denials of this tool once more, by the one key of each thing (`actionByKeys`): under its other name the same action has another
   * digest. Absent where this tool was not denied, and in what older versions stored.
   */
  deniedActions?: readonly string[]
  /** The key of each target that goes by more than one name. */
  keys?: Readonly<Record<string, string>>
  /** Targets another incident is writing to now. */
  busy: readonly { target: string; incidentId: string }[]
  /** Standing grants of this tool that may still be used; which action they are for is checked here. */
  grants: readonly { id: string; actionDigest: string; stateFingerprint: string }[]
  /** The incident's alerts as they stand, where an ending is judged; absent in what version 0.1 stored. */
  alerts?: {
    total: number
    firing: number
    unknown: number
    /** Firing, of a sender that never says when an alert ends. */
    endless: number
    /** Since the last of them ended; null while one fires, or without one. */
    endedForSeconds: number | null
    /** How long they must be quiet before an incident may end as over. */
    quietSeconds: number
  }
  /** A person asked something; there is nothing to repair. */
  isQuestion?: boolean
  /** An approval that a person gave for this call and that is still in time; binding is checked here. */
  approval: { id: string; callId: string; actionDigest: string; stateFingerprint: string } | null
}

/** Where nobody has said anything: nothing denied, taken, granted or approved, every tool offered. */
export function plainPolicy(incidentId: string, resource: ResourceRef | null): Policy {
  return {
    incidentId,
    resource,
    role: 'leader',
    paused: false,
    raised: { risk: null, required: 1 },
    offered: null,
    vicinity: resource ? [resource] : [],
    denied: [],
    busy: [],
    grants: [],
    approval: null,
  }
}
