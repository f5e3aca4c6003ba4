import { tellDown, tellWhyDown } from '../../domain/told-plan.ts'
import { Inert } from '../inert.tsx'

type Down = { vm: string; reason: string }

/** Who has no place in a plan, and why as far as it is known. */
export function StaysDown({ unplaced, obstacle }: { unplaced: Down[]; obstacle: string | null }) {
  if (unplaced.length === 0) return null
  return (
    <div className="said wrong stack tight">
      <p>
        <strong>{tellDown(unplaced.length)}</strong>
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
        <Inert text={tellWhyDown(obstacle)} />
      </p>
    </div>
  )
}

/** The same out of a dry run, whose details are whatever a tool put there. What is not understood is shown as it is. */
export function StaysDownOf({ details }: { details: Record<string, unknown> }) {
  const { unplaced, obstacle } = details
  if (!Array.isArray(unplaced)) return null
  const down = unplaced.map((each: Partial<Down> | null) =>
    typeof each?.vm === 'string'
      ? { vm: each.vm, reason: typeof each.reason === 'string' ? each.reason : '' }
      : { vm: JSON.stringify(each), reason: '' },
  )
  return <StaysDown unplaced={down} obstacle={typeof obstacle === 'string' ? obstacle : null} />
}
