import type { Proof } from '../../domain/verification.ts'
import { specOf } from '../../mesh/registry.ts'
import type { Postcondition as Promised } from '../../mesh/specs/spec.ts'
import { whyAsked } from './asked.ts'
import type { Mapped } from './call.ts'
import type { Executor } from './executor.ts'

/**
 * What a write promises that can be looked at where it is done; null where nothing can be: its arguments promise nothing, it goes through a
 * host, or the device would ask a person before it looks.
 */
export function promiseOf(executor: Executor, { spec, input }: Pick<Mapped, 'spec' | 'input'>): Promised | null {
  if (executor.through !== null) return null
  const promised = spec.promise?.(input) ?? null
  if (promised === null) return null
  const { capability, args } = promised.look(null)
  const look = { spec: specOf(capability), input: args, capability, args }
  return whyAsked(executor.device, look) === null ? promised : null
}

/** What will prove that this very call worked, for the person who decides about it. */
export function proofOf(executor: Executor, mapped: Pick<Mapped, 'spec' | 'input'>): Proof {
  const { promised, otherwise } = mapped.spec.proof
  return promised !== null && promiseOf(executor, mapped) !== null
    ? { by: 'state', text: promised }
    : { by: 'nothing', text: otherwise }
}
