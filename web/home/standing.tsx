import { useState } from 'react'
import type { SitePolicyState } from '../../domain/site-policy-state.ts'
import { ask, readAgain, useAsk } from '../api.ts'
import { Inert } from '../inert.tsx'
import { Confirm } from '../page-frame.tsx'
import { useMissing } from '../permissions.ts'
import { Stops } from '../stops.tsx'

const everyMs = 60_000

/** Shows the stops that people set for the complete site, and a policy that waits for an admin. */
export function StandingLines() {
  return (
    <>
      <Stops />
      <WaitingPolicy />
    </>
  )
}

/**
 * Shows a policy that widens permissions and applies only after an admin accepted it. The changes
 * are shown above the button.
 */
function WaitingPolicy() {
  const refused = useMissing('write_config')
  const policy = useAsk<SitePolicyState>(['policy'], '/policy', { refetchInterval: everyMs })
  const [shown, setShown] = useState<SitePolicyState['waiting']>(null)
  const waiting = policy.data?.waiting
  if (!waiting) return null
  const { digest, widens, place, commit } = waiting
  const run = async () => {
    // Accepts the file that was shown when the dialog opened, not a later one.
    await ask('/policy/accept', { method: 'POST', body: { digest: shown?.digest ?? digest } })
  }
  const more = widens.length - 1
  return (
    <div className="said lamp row wraps">
      <span>
        <strong>A site policy waits for an admin:</strong> <Inert text={widens[0] ?? ''} />
        {more > 0 && `, and ${more} more`}.
      </span>
      <Confirm
        button="Accept"
        label="the policy that waits"
        title="Put this policy in force?"
        refused={refused}
        onOpen={() => setShown(waiting)}
        run={() => run().finally(() => void readAgain(['policy']))}
      >
        <p className="soft wraps">
          <Inert text={place} />
          {commit && ` of commit ${commit.slice(0, 12)}`}, digest {(shown ?? waiting).digest.slice(0, 12)}. This policy
          may allow more than the policy in force:
        </p>
        <ul className="stack tight">
          {(shown ?? waiting).widens.map((each) => (
            <Inert key={each} as="li" className="wraps" text={each} />
          ))}
        </ul>
      </Confirm>
    </div>
  )
}
