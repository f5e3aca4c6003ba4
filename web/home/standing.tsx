import { useState } from 'react'
import type { SitePolicyState } from '../../domain/site-policy-state.ts'
import { ask, queryClient, useAsk } from '../api.ts'
import { Inert } from '../inert.tsx'
import { Confirm } from '../page-frame.tsx'
import { missing } from '../permissions.ts'
import { useSession } from '../session.ts'
import { Stops } from '../stops.tsx'

const everyMs = 60_000

/** What people decided for the whole site, and what waits for an admin. */
export function StandingLines() {
  return (
    <>
      <Stops />
      <WaitingPolicy />
    </>
  )
}

/** A policy that widens holds once an admin accepts it: what it widens stands above the button. */
function WaitingPolicy() {
  const { data: session } = useSession()
  const policy = useAsk<SitePolicyState>(['policy'], '/policy', { refetchInterval: everyMs })
  const [shown, setShown] = useState<SitePolicyState['waiting']>(null)
  const waiting = policy.data?.waiting
  if (!waiting) return null
  const { digest, widens, place, commit } = waiting
  const run = async () => {
    // The file on the screen as the dialog opened, and none that came meanwhile.
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
        refused={missing(session, 'write_config')}
        onOpen={() => setShown(waiting)}
        run={() => run().finally(() => void queryClient.invalidateQueries({ queryKey: ['policy'] }))}
      >
        <p className="soft wraps">
          <Inert text={place} />
          {commit && ` of commit ${commit.slice(0, 12)}`}, digest {(shown ?? waiting).digest.slice(0, 12)}. It lets
          these run, which are asked about or refused now:
        </p>
        <ul className="stack tight">
          {(shown ?? waiting).widens.map((each) => (
            <li key={each} className="wraps">
              <Inert text={each} />
            </li>
          ))}
        </ul>
      </Confirm>
    </div>
  )
}
