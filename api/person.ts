import type { Principal } from '../domain/operator.ts'
import { Problem } from './problem.ts'

/** The person behind a request, by the name that rows have. Refuses machines: only people take and mark. */
export function personOf(principal: Principal, actor: string): { operatorId: string; actor: string; name: string } {
  const { operatorId, name } = principal
  if (operatorId === null) throw new Problem(403, 'NOT_A_PERSON', 'Only a person can do this.')
  return { operatorId, actor, name }
}
