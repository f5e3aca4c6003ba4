import { type DecisionRight, type DecisionSubject, parseRight, refusalOfRights } from './decision-right.ts'
import { type PersonRole, permissions } from './permissions.ts'
import type { Risk } from './tool.ts'

/** The facts about a person that matter for approvals. */
export type Decider = {
  name: string
  role: PersonRole
  maxRisk: Risk
  /** Null stands for all types of incidents. */
  incidentTypes: readonly string[] | null
  /** Further rights as text. Each right applies on its own and never combines with another. */
  rights: readonly string[]
  disabled: boolean
}

/**
 * Returns why this person may not decide this approval; null if the person may. Equal limits apply
 * to denials, because a denial ends somebody else's question. Nobody may decide an unknown risk.
 */
export function mayDecide(decider: Decider, asked: DecisionSubject): string | null {
  const { name, role, disabled } = decider
  if (disabled) return `${name} is disabled`
  if (!permissions[role].includes('decide')) return `${name} (${role}) may not decide approvals`
  return refusalOfRights(name, rightsOf(decider), asked)
}

/**
 * Returns why this person may not decide this approval for every resource; null if the person may.
 * Ignores rights that are limited to some resources.
 */
export function mayDecideEverywhere(decider: Decider, asked: Omit<DecisionSubject, 'targets'>): string | null {
  const rights = decider.rights.filter((words) => readRight(words).some(({ resources }) => resources === null))
  return mayDecide({ ...decider, rights }, { ...asked, targets: [] })
}

/**
 * Lists the person's own limits as a right about all resources, then each further right. A text
 * that cannot be parsed gives no right.
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
