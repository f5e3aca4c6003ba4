import { useEffect, useRef } from 'react'
import type { PlanStep } from '../../domain/placement.ts'
import { Inert } from '../inert.tsx'

/** More than these scroll in a separate box: the decision stands below them. */
const steadyCount = 12

/** The steps in words, in the order of their numbers; the one that runs is marked. */
export function Steps({ steps, position }: { steps: PlanStep[]; position: number }) {
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
    <section className="exact" aria-label={`All ${steps.length} steps`} tabIndex={0}>
      {list}
    </section>
  )
}

function Step({ step: { step, action, vm, from, to, wave, needs } }: { step: PlanStep }) {
  const after = needs?.length > 0 ? `, after ${needs.join(', ')}` : ''
  return (
    <>
      <span className="soft">{step}.</span> {action} <Name text={vm} />
      {from && (
        <>
          {' '}
          from <Name text={from} />
        </>
      )}{' '}
      to <Name text={to} />
      {wave && (
        <span className="soft small">
          {' '}
          wave {wave}
          {after}
        </span>
      )}
    </>
  )
}

function Name({ text }: { text: string }) {
  return (
    <code>
      <Inert text={text} />
    </code>
  )
}
