import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react'
import { capitalize } from '../../domain/format.ts'
import {
  formatDown,
  formatPlanProof,
  formatStanding,
  formatWhyDown,
  type LeftDown,
  toStandingAfter,
  toTriageTold,
} from '../../domain/format-plan.ts'
import type { PlanStep, Proposal, ProposalWithProblem } from '../../domain/placement.ts'
import { useAsk } from '../api.ts'
import { Inert, inertText } from '../inert.tsx'
import { lastPosition } from './layout.ts'
import { PlacementPicture } from './picture.tsx'

type Props = {
  steps: PlanStep[]
  position: number
  go: (position: number) => void
  /** True if no step has run. */
  isAhead: boolean
}

/**
 * Milliseconds for playing a complete plan. No step is too short to see or too long to wait for.
 */
const playedMs = 30_000
const [shortestMs, longestMs] = [200, 1_500]

/**
 * Moves through a plan with a button, arrow keys, a slider or playback. Words describe each
 * position.
 */
function Stepper({ steps, position, go, isAhead }: Props) {
  const last = lastPosition(steps)
  const { plays, wantsCalm, stop, play } = usePlayback(position, last, go)
  const to = (wanted: number) => {
    stop()
    go(Math.min(last, Math.max(0, wanted)))
  }
  const onKeyDown = (event: KeyboardEvent) => {
    // Leaves these keys to the slider.
    if (event.target instanceof HTMLInputElement || event.ctrlKey || event.metaKey || event.altKey) return
    const wanted = { ArrowRight: position + 1, ArrowLeft: position - 1, Home: 0, End: last }[event.key]
    if (wanted === undefined) return
    event.preventDefault()
    to(wanted)
  }
  return (
    <fieldset className="stepper" onKeyDown={onKeyDown}>
      <legend className="visually-hidden">Go through the plan step by step</legend>
      <StepperButtons position={position} last={last} to={to} playback={{ plays, wantsCalm, play }} />
      <input
        type="range"
        min={0}
        max={last}
        value={position}
        aria-label="How far the plan is"
        aria-valuetext={formatPosition(steps, position)}
        onChange={({ target }) => to(Number(target.value))}
      />
      <p role="status" className="wraps says">
        {isAhead && <strong>Preview: nothing has run. </strong>}
        {describePosition(steps, position)}
      </p>
    </fieldset>
  )
}

/** Advances the position during playback, and stops at the end of the plan. */
function usePlayback(position: number, last: number, go: (position: number) => void) {
  const [plays, setPlays] = useState(false)
  const wantsCalm = matchMedia('(prefers-reduced-motion: reduce)').matches
  useEffect(() => {
    if (!plays) return
    if (position >= last) return setPlays(false)
    const ms = Math.min(longestMs, Math.max(shortestMs, playedMs / last))
    const timer = setTimeout(() => go(position + 1), ms)
    return () => clearTimeout(timer)
  }, [plays, position, last, go])
  const play = () => {
    if (wantsCalm) return
    if (!plays && position >= last) go(0)
    setPlays(!plays)
  }
  return { plays, wantsCalm, stop: () => setPlays(false), play }
}

type ButtonsProps = {
  position: number
  last: number
  to(position: number): void
  playback: Pick<ReturnType<typeof usePlayback>, 'plays' | 'wantsCalm' | 'play'>
}

function StepperButtons({ position, last, to, playback: { plays, wantsCalm, play } }: ButtonsProps) {
  const id = useId()
  return (
    <>
      <div className="buttons">
        <button type="button" aria-disabled={position === 0} onClick={() => to(0)}>
          First
        </button>
        <button type="button" aria-disabled={position === 0} onClick={() => to(position - 1)}>
          Previous
        </button>
        <button
          type="button"
          aria-disabled={wantsCalm}
          aria-describedby={wantsCalm ? `${id}-calm` : undefined}
          onClick={play}
        >
          {plays ? 'Pause' : 'Play'}
        </button>
        <button type="button" aria-disabled={position === last} onClick={() => to(position + 1)}>
          Next
        </button>
        <button type="button" aria-disabled={position === last} onClick={() => to(last)}>
          Last
        </button>
      </div>
      {wantsCalm && (
        <p id={`${id}-calm`} className="soft">
          The picture does not play by itself, because your system is set to reduced motion.
        </p>
      )}
    </>
  )
}

/** Formats `Step 2 of 5, wave 1: migrate vm-3 from a to b`. */
function describePosition(steps: PlanStep[], position: number): string {
  const step = steps[position - 1]
  if (!step)
    return position === 0
      ? 'Before the plan'
      : `After the plan: ${steps.length === 1 ? 'its step' : `all ${steps.length} steps`} would be done`
  const { action, vm, from, to, wave } = step
  const when = wave ? `, wave ${wave}` : ''
  return inertText(`${formatPosition(steps, position)}${when}: ${action} ${vm}${from ? ` from ${from}` : ''} to ${to}`)
}

function formatPosition(steps: PlanStep[], position: number): string {
  if (position === 0) return 'before'
  return position > steps.length ? 'after' : `Step ${position} of ${steps.length}`
}

/** Number of steps above which the list scrolls, so that the content below it is found. */
const steadyCount = 40

/** Lists the steps in words, in the order of their numbers. The running step is marked. */
function Steps({ steps, position }: { steps: PlanStep[]; position: number }) {
  const current = useRef<HTMLLIElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the mark moves with the position
  useEffect(() => {
    const box = current.current?.closest('section')
    if (!box || !current.current) return
    const { top, bottom } = current.current.getBoundingClientRect()
    const view = box.getBoundingClientRect()
    if (top < view.top) box.scrollTop -= view.top - top
    if (bottom > view.bottom) box.scrollTop += bottom - view.bottom
  }, [position])
  const list = (
    <ol className="steps">
      {steps.map((each) => (
        <li
          key={each.step}
          ref={each.step === position ? current : null}
          aria-current={each.step === position ? 'step' : undefined}
        >
          <Step step={each} />
        </li>
      ))}
    </ol>
  )
  if (steps.length <= steadyCount) return list
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so it must be reachable by keyboard
    <section className="scrolls" aria-label={`All ${steps.length} steps`} tabIndex={0}>
      {list}
    </section>
  )
}

function Step({ step: { step, action, vm, from, to, wave, needs } }: { step: PlanStep }) {
  const after = needs?.length > 0 ? `, after ${needs.join(', ')}` : ''
  return (
    <>
      <span className="soft">{step}</span>{' '}
      <span>
        {action} <Inert text={vm} />
        {from && (
          <>
            {' '}
            from <Inert text={from} />
          </>
        )}{' '}
        to <Inert as="b" text={to} />
      </span>{' '}
      <span className="soft">{wave && `wave ${wave}${after}`}</span>
    </>
  )
}

type PlayProps = {
  /** True if the plan's steps can be played, for a decision about the plan. */
  played?: boolean
  /** True if no step has run, so that the drawing is a preview. */
  isAhead?: boolean
}

/** Draws a stored plan with the hosts that it was made for. */
export function PlanOfProposal({ id, played = false, isAhead = false }: PlayProps & { id: string }) {
  const plan = useAsk<ProposalWithProblem>(['plan', id], `/placement/proposals/${id}/problem`, {
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (plan.isError && played)
    return <p className="strong">The plan cannot be drawn now. Its steps are in the details below.</p>
  if (!plan.data) return null
  return <Plan {...plan.data} played={played} isAhead={isAhead} />
}

function Plan({ proposal, problem, barred, played, isAhead }: ProposalWithProblem & Required<PlayProps>) {
  const { steps, unplaced, obstacle, triage } = proposal
  const last = lastPosition(steps)
  // Begins with the present for a person who decides. A plan in the log is shown complete.
  const [position, setPosition] = useState(played ? 0 : last)
  const then = position === last ? 'after' : `while step ${position} of ${steps.length} runs`
  const title = position === 0 ? (isAhead ? 'now' : 'before') : isAhead ? `preview: ${then}` : then
  return (
    <figure className="placement">
      {!played && <StaysDown unplaced={unplaced} obstacle={obstacle?.text ?? null} triage={toTriageTold(triage)} />}
      <PlacementPicture proposal={{ ...proposal, barred }} problem={problem} position={position} title={title} />
      {played && <Stepper steps={steps} position={position} go={setPosition} isAhead={isAhead} />}
      <figcaption>
        <Steps steps={steps} position={position} />
        <Worth proposal={proposal} />
      </figcaption>
    </figure>
  )
}

/** Shows the proofs of a plan, and what the failure of a further host would do after it. */
function Worth({ proposal }: { proposal: Proposal }) {
  const { proof, standing } = proposal
  const isWorse = standing !== null && toStandingAfter(standing).worse.length > 0
  return (
    <ul>
      <li>{capitalize(formatPlanProof(proposal, proof.kind))}.</li>
      {standing && <Inert as="li" className={isWorse ? 'strong' : ''} text={formatStanding(standing)} />}
    </ul>
  )
}

/** Lists the VMs that have no place in a plan, and the reason if it is known. */
export function StaysDown(left: LeftDown) {
  const { unplaced } = left
  if (unplaced.length === 0) return null
  return (
    <div className="stays-down">
      <p>
        <strong>{formatDown(unplaced.length)}</strong>
      </p>
      <ul>
        {unplaced.map(({ vm, reason }) => (
          <li key={vm}>
            <Inert as="b" text={vm} />
            {reason && ': '}
            <Inert text={reason} />
          </li>
        ))}
      </ul>
      <Inert as="p" text={formatWhyDown(left)} />
    </div>
  )
}
