import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import {
  capitalize,
  formatDown,
  formatObstacle,
  formatPlanProof,
  formatStanding,
  toStandingAfter,
} from '../../domain/format.ts'
import type { Proposal, ProposalWithProblem } from '../../domain/placement.ts'
import { ask } from '../api.ts'
import { Inert } from '../markdown.tsx'
import { lastPosition } from './layout.ts'
import { PlacementPicture } from './picture.tsx'
import { Stepper, Steps } from './steps.tsx'

/** A stored plan as a picture of the hosts it was made for, with its steps to go through where somebody decides about it. */
export function PlanOfProposal({ id, played = false }: { id: string; played?: boolean }) {
  const plan = useQuery({
    queryKey: ['plan', id],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: ({ signal }) => ask<ProposalWithProblem>(`/placement/proposals/${id}/problem`, { signal }),
  })
  if (plan.isError && played)
    return <p className="said wrong">The plan cannot be drawn just now. Its steps are in the details below.</p>
  if (!plan.data) return null
  return <Plan {...plan.data} played={played} />
}

function Plan({ proposal, problem, played }: ProposalWithProblem & { played: boolean }) {
  const { steps, unplaced, obstacle } = proposal
  const last = lastPosition(steps)
  const [position, setPosition] = useState(last)
  const title =
    position === 0 ? 'before' : position === last ? 'after' : `while step ${position} of ${steps.length} runs`
  return (
    <figure className="placement">
      {!played && <StaysDown unplaced={unplaced} obstacle={obstacle?.text ?? null} />}
      <PlacementPicture proposal={proposal} problem={problem} position={position} title={title} />
      {played && <Stepper steps={steps} position={position} go={setPosition} />}
      <figcaption className="stack">
        <Steps steps={steps} position={position} />
        <Worth proposal={proposal} />
      </figcaption>
    </figure>
  )
}

/** What is proved of the plan, and what a further death would mean after it. */
function Worth({ proposal }: { proposal: Proposal }) {
  const { proof, standing } = proposal
  const isWorse = standing !== null && toStandingAfter(standing).worse.length > 0
  return (
    <ul className="stack tight">
      <li>{capitalize(formatPlanProof(proposal, proof.kind))}.</li>
      {standing && (
        <li className={isWorse ? 'wraps tone-warning' : 'wraps'}>
          <Inert text={formatStanding(standing)} />
        </li>
      )}
    </ul>
  )
}

type Down = { vm: string; reason: string }

/** Who has no place in a plan, and why as far as it is known. */
export function StaysDown({ unplaced, obstacle }: { unplaced: Down[]; obstacle: string | null }) {
  if (unplaced.length === 0) return null
  return (
    <div className="said wrong stack tight">
      <p>
        <strong>{formatDown(unplaced.length)}</strong>
      </p>
      <ul>
        {unplaced.map(({ vm, reason }) => (
          <li key={vm} className="wraps">
            <code>
              <Inert text={vm} />
            </code>
            {reason && ': '}
            <Inert text={reason} />
          </li>
        ))}
      </ul>
      <p className="wraps">
        <Inert text={formatObstacle(obstacle)} />
      </p>
    </div>
  )
}

/** The same out of a dry run, whose details are whatever a tool put there. What is not understood is shown as it is. */
export function StaysDownInDryRun({ details }: { details: Record<string, unknown> }) {
  const { unplaced, obstacle } = details
  if (!Array.isArray(unplaced)) return null
  const down = unplaced.map((each: Partial<Down> | null) =>
    typeof each?.vm === 'string'
      ? { vm: each.vm, reason: typeof each.reason === 'string' ? each.reason : '' }
      : { vm: JSON.stringify(each), reason: '' },
  )
  return <StaysDown unplaced={down} obstacle={typeof obstacle === 'string' ? obstacle : null} />
}
