import { type DecisionRight, type DecisionSubject, parseRight, refusalOfRights } from './decision-right.ts'
import { type PersonRole, permissions } from './permissions.ts'
import type { Risk } from './tool.ts'

/** A person as approvals see them. */
export type Decider = {
  name: string
  role: PersonRole
  maxRisk: Risk
  /** Null: all. */
  incidentTypes: readonly string[] | null
  /** Further rights in words, each by itself. */
  rights: readonly string[]
  disabled: boolean
}

/**
 * Says why this person may not decide this approval, either way; null when they may. A denial
 * decides too: it ends what somebody else was asked to judge. An unknown risk is above everybody.
 */
export function mayDecide(decider: Decider, asked: DecisionSubject): string | null {
  const { name, role, disabled } = decider
  if (disabled) return `${name} is disabled`
  if (!permissions[role].includes('decide')) return `${name} (${role}) may not decide approvals`
  return refusalOfRights(name, rightsOf(decider), asked)
}

/** The same about every resource there is: a right to some of them counts for nothing. */
export function mayDecideEverywhere(decider: Decider, asked: Omit<DecisionSubject, 'targets'>): string | null {
  const rights = decider.rights.filter((words) => readRight(words).some(({ resources }) => resources === null))
  return mayDecide({ ...decider, rights }, { ...asked, targets: [] })
}

/**
 * The person's own limits, as a right about everything, and each further right. An unreadable one
 * gives nothing.
 */
export function rightsOf({
  maxRisk,
  incidentTypes,
  rights,
}: Pick<Decider, 'maxRisk' | 'incidentTypes' | 'rights'>): DecisionRight[] {
  return [{ maxRisk, incidentTypes, resources: null, until: null }, ...rights.flatMap(readRight)]
}

function readRight(words: string): DecisionRight[] {
  try {
    return [parseRight(words)]
  } catch {
    return []
  }
}
