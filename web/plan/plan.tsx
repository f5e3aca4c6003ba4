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

type PlayProps = {
  /** Its steps can be gone through, as where somebody decides about it. */
  played?: boolean
  /** Nothing of it has run: what is drawn is a preview. */
  isAhead?: boolean
}

/** A stored plan as a picture of the hosts it was made for. */
export function PlanOfProposal({ id, played = false, isAhead = false }: PlayProps & { id: string }) {
  const plan = useQuery({
    queryKey: ['plan', id],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: ({ signal }) => ask<ProposalWithProblem>(`/placement/proposals/${id}/problem`, { signal }),
  })
  if (plan.isError && played)
    return <p className="said wrong">The plan cannot be drawn just now. Its steps are in the details below.</p>
  if (!plan.data) return null
  return <Plan {...plan.data} played={played} isAhead={isAhead} />
}

function Plan({ proposal, problem, barred, played, isAhead }: ProposalWithProblem & Required<PlayProps>) {
  const { steps, unplaced, obstacle } = proposal
  const last = lastPosition(steps)
  // Who decides begins with what is, and goes on from there; a plan in the log is shown whole.
  const [position, setPosition] = useState(played ? 0 : last)
  const then = position === last ? 'after' : `while step ${position} of ${steps.length} runs`
  const title = position === 0 ? (isAhead ? 'now' : 'before') : isAhead ? `preview: ${then}` : then
  return (
    <figure className="placement">
      {!played && <StaysDown unplaced={unplaced} obstacle={obstacle?.text ?? null} />}
      <PlacementPicture proposal={{ ...proposal, barred }} problem={problem} position={position} title={title} />
      {played && <Stepper steps={steps} position={position} go={setPosition} isAhead={isAhead} />}
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
