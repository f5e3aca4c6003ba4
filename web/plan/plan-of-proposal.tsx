import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { PlacementProblem, Proposal } from '../../domain/placement.ts'
import { standsAfter, tellProof, tellStanding } from '../../domain/told-plan.ts'
import { ask } from '../api.ts'
import { Inert } from '../inert.tsx'
import { lastPosition } from './layout.ts'
import { PlacementPicture } from './picture.tsx'
import { StaysDown } from './stays-down.tsx'
import { Stepper } from './stepper.tsx'
import { Steps } from './steps.tsx'

type Found = { proposal: Proposal; problem: PlacementProblem }

/** A stored plan as a picture of the hosts it was made for, with its steps to go through where somebody decides about it. */
export function PlanOfProposal({ id, played = false }: { id: string; played?: boolean }) {
  const plan = useQuery({
    queryKey: ['plan', id],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: ({ signal }) => ask<Found>(`/placement/proposals/${id}/problem`, { signal }),
  })
  if (plan.isError && played)
    return <p className="said wrong">The plan cannot be drawn just now. Its steps are in the details below.</p>
  if (!plan.data) return null
  return <Plan {...plan.data} played={played} />
}

function Plan({ proposal, problem, played }: Found & { played: boolean }) {
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
  const isWorse = standing !== null && standsAfter(standing).worse.length > 0
  return (
    <ul className="stack tight">
      <li>{capital(tellProof(proposal, proof.kind))}.</li>
      {standing && (
        <li className={isWorse ? 'wraps tone-warning' : 'wraps'}>
          <Inert text={tellStanding(standing)} />
        </li>
      )}
    </ul>
  )
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
