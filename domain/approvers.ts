import { isType } from './incident-type.ts'
import { type PersonRole, permissions } from './permissions.ts'
import { type Risk, risks } from './tool.ts'

/** A person as approvals see them. */
export type Decider = {
  name: string
  role: PersonRole
  maxRisk: Risk
  /** Null: all. */
  incidentTypes: readonly string[] | null
  disabled: boolean
}

/**
 * Why this person may not decide this approval, either way; null when they may. A denial counts as deciding: it ends what
 * somebody else was asked to judge. A risk that this version does not know is above everybody.
 */
export function mayDecide(decider: Decider, approval: { risk: string; incidentType: string }): string | null {
  const { name, role, maxRisk, incidentTypes, disabled } = decider
  if (disabled) return `${name} is disabled`
  if (!permissions[role].includes('decide')) return `${name} (${role}) may not decide approvals`
  const risk = (risks as readonly string[]).indexOf(approval.risk)
  if (risk < 0) return `nobody decides about the unknown risk ${approval.risk}`
  if (risk > risks.indexOf(maxRisk))
    return `${name} decides about risks up to ${maxRisk}, and this one is ${approval.risk}`
  if (incidentTypes !== null && !incidentTypes.some((each) => isType(each, approval.incidentType))) {
    return `${name} decides about incidents of other types than ${approval.incidentType}`
  }
  return null
}
