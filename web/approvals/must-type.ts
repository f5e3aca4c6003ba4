import type { Approval } from '../../domain/approval.ts'

/** For the top class the name of its target is typed before it is approved. */
export function mustType({ risk, targets }: Pick<Approval, 'risk' | 'targets'>): string | null {
  const target = targets.find(({ kind }) => kind !== 'proposal') ?? targets[0]
  return risk === 'critical' && target ? target.id : null
}
