import { useRef, useState } from 'react'
import type { ApprovalDetail } from '../../domain/approval.ts'
import { useKeys } from '../keys.tsx'
import { missing, useSession } from '../session.ts'
import { useNow } from '../time.ts'
import { Approve } from './approve.tsx'
import { DecisionBar } from './decision-bar.tsx'
import { Deny } from './deny.tsx'
import { Edit } from './edit.tsx'
import { useDecision } from './query.ts'

/** The ways to decide, the one that ends it first. */
export function Decide({ approval }: { approval: ApprovalDetail }) {
  const now = useNow()
  const decision = useDecision(approval.id)
  const approveHeading = useRef<HTMLHeadingElement>(null)
  const denyHeading = useRef<HTMLHeadingElement>(null)
  useKeys({
    a: () => approveHeading.current?.focus(),
    d: () => focusDenial(denyHeading.current),
  })
  const isOver = Date.parse(approval.expiresAt) <= now
  if (approval.status !== 'pending' || isOver) return decision.error && <Problem text={decision.error.message} />
  return <DecisionForms approval={approval} decision={decision} headings={{ approveHeading, denyHeading }} />
}

type Heading = { current: HTMLHeadingElement | null }
type Props = {
  approval: ApprovalDetail
  decision: ReturnType<typeof useDecision>
  headings: { approveHeading: Heading; denyHeading: Heading }
}

function DecisionForms({ approval, decision, headings: { approveHeading, denyHeading } }: Props) {
  const { data: session } = useSession()
  const [armed, setArmed] = useState(false)
  const refused = missing(session, 'decide')
  const disabled = decision.isPending || refused !== null
  const disarm = () => {
    setArmed(false)
    requestAnimationFrame(() => approveHeading.current?.focus())
  }
  return (
    <div className="decide">
      {decision.error && <Problem text={decision.error.message} />}
      {refused && <p className="said">{refused} You can read everything here.</p>}
      <section aria-labelledby="deny-title">
        <h2 id="deny-title" ref={denyHeading} tabIndex={-1}>
          Deny
        </h2>
        <Deny
          id={approval.id}
          disabled={disabled}
          onDeny={(denial) => decision.mutate({ decision: 'deny', ...denial })}
        />
      </section>
      <section aria-labelledby="edit-title">
        <h2 id="edit-title">Edit</h2>
        <Edit
          approval={approval}
          disabled={disabled}
          onEdit={(edited) => decision.mutate({ decision: 'approve', ...edited })}
        />
      </section>
      <section aria-labelledby="approve-title">
        <h2 id="approve-title" ref={approveHeading} tabIndex={-1}>
          Approve
        </h2>
        <Approve
          approval={approval}
          disabled={disabled}
          armed={armed}
          onBack={disarm}
          onApprove={(grant) => decision.mutate({ decision: 'approve', grant })}
        />
      </section>
      <DecisionBar
        approval={approval}
        refused={refused}
        isArmed={decision.isPending || armed}
        onDeny={() => focusDenial(denyHeading.current)}
        onApprove={() => isComplete(approveHeading.current) && setArmed(true)}
      />
    </div>
  )
}

/** To the first thing that a denial takes; never to a button that does it. */
function focusDenial(otherwise: HTMLElement | null): void {
  const field = document.querySelector<HTMLInputElement>('input[name="denial"]:not(:disabled)') ?? otherwise
  field?.focus()
  field?.scrollIntoView({ block: 'center' })
}

/** Is what stands above the first press filled in as it must be? The browser says what is wrong. */
function isComplete(heading: HTMLElement | null): boolean {
  return heading?.parentElement?.querySelector('form')?.reportValidity() ?? true
}

function Problem({ text }: { text: string }) {
  return (
    <p className="said wrong" role="alert">
      {text}
    </p>
  )
}
