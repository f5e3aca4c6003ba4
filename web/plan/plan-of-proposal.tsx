import { useQuery } from '@tanstack/react-query'
import type { PlacementProblem, Proposal } from '../../domain/placement.ts'
import { ask } from '../api.ts'
import { PlacementPicture } from './picture.tsx'

/** A stored plan as a picture of the hosts it was made for. Silent where the plan cannot be read: the steps stand beside it. */
export function PlanOfProposal({ id }: { id: string }) {
  const plan = useQuery({
    queryKey: ['plan', id],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: ({ signal }) =>
      ask<{ proposal: Proposal; problem: PlacementProblem }>(`/placement/proposals/${id}/problem`, { signal }),
  })
  if (!plan.data) return null
  return <PlacementPicture proposal={plan.data.proposal} problem={plan.data.problem} />
}
