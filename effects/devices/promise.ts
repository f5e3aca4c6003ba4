import type { PostconditionProof } from '../../domain/envelope.ts'
import { specOf } from '../../mesh/registry.ts'
import type { Postcondition } from '../../mesh/specs/spec.ts'
import { findApprovalNeed } from './approval-need.ts'
import type { Executor, MappedCall } from './executor.ts'

/**
 * Returns the condition by which the device can show afterwards that a write had its effect. Null
 * if there is none: the arguments give no condition, the call goes through a host, or the device
 * demands approval for the read.
 */
export function findPromise(
  executor: Executor,
  { spec, input }: Pick<MappedCall, 'spec' | 'input'>,
): Postcondition | null {
  if (executor.through !== null) return null
  const promised = spec.promise?.(input) ?? null
  if (promised === null) return null
  const { capability, args } = promised.look(null)
  const look = { spec: specOf(capability), input: args, capability, args }
  return findApprovalNeed(executor.device, look) === null ? promised : null
}

/** Describes how this call will be verified, for the person who decides. */
export function describeProof(executor: Executor, mapped: Pick<MappedCall, 'spec' | 'input'>): PostconditionProof {
  const { promised, otherwise } = mapped.spec.proof
  return promised !== null && findPromise(executor, mapped) !== null
    ? { by: 'state', text: promised }
    : { by: 'nothing', text: otherwise }
}
