import { type FormEvent, useEffect, useRef, useState } from 'react'
import type { ApprovalDetail, DenialCategory } from '../../domain/approval.ts'
import { ApiProblem } from '../api.ts'
import { Radios, TextArea, useDraft } from '../fields.tsx'
import { useKeys } from '../keys.tsx'
import { missing, useSession } from '../sign-in.tsx'
import { Approve } from './approve.tsx'
import { DecisionBar } from './decision-bar.tsx'
import { Edit } from './edit.tsx'
import type { useDecision } from './query.ts'
import type { Card } from './together.tsx'

const categories: Record<DenialCategory, string> = {
  wrong_target: 'wrong target',
  too_risky: 'too risky',
  wrong_time: 'wrong time',
  need_evidence: 'need evidence',
  other: 'other',
}

const options = Object.entries(categories) as [DenialCategory, string][]

export type Denial = { category: DenialCategory; reason: string }

/** A denial says why: the agent reads it, and the same action is not asked again in the group. */
function Deny({ id, disabled, onDeny }: { id: string; disabled: boolean; onDeny(denial: Denial): void }) {
  const [kind, setKind] = useState<DenialCategory | null>(null)
  const [text, setText] = useDraft(`denial of ${id}`)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!kind) return
    onDeny({ category: kind, reason: text.trim() || categories[kind] })
  }
  return (
    <form className="stack" onSubmit={submit}>
      <fieldset className="stack tight" disabled={disabled}>
        <legend>Why not? The agent reads it and does not ask for this again.</legend>
        <Radios name="denial" options={options} value={kind} onChange={setKind} />
        <TextArea
          id="denial-text"
          label={`In your words${kind === 'other' ? '' : ', if you like'}`}
          rows={2}
          maxLength={1900}
          required={kind === 'other'}
          value={text}
          onChange={setText}
        />
        <div>
          <button type="submit">Deny</button>
        </div>
      </fieldset>
    </form>
  )
}

/** The ways to decide, the one that ends it first. */
export function Decide({ approval, card, decision }: Omit<Props, 'headings'>) {
  const approveHeading = useRef<HTMLHeadingElement>(null)
  const denyHeading = useRef<HTMLHeadingElement>(null)
  useKeys({
    a: () => approveHeading.current?.focus(),
    d: () => focusDenial(denyHeading.current),
  })
  if (!card.open.some(({ id }) => id === approval.id))
    return decision.error && <Problem text={decision.error.message} />
  return (
    <DecisionForms approval={approval} card={card} decision={decision} headings={{ approveHeading, denyHeading }} />
  )
}

type Heading = { current: HTMLHeadingElement | null }
type Props = {
  approval: ApprovalDetail
  card: Card
  decision: ReturnType<typeof useDecision>
  headings: { approveHeading: Heading; denyHeading: Heading }
}

function DecisionForms({ approval, card, decision, headings: { approveHeading, denyHeading } }: Props) {
  const { data: session } = useSession()
  const [armed, setArmed] = useState(false)
  const refused = missing(session, 'decide')
  // The last one to run is decided first: when the first is approved, and the run goes on, all have their answer.
  const ids = card.chosen.map(({ id }) => id).reverse()
  const disabled = decision.isPending || refused !== null
  // The page of the incident links to one of the two.
  useEffect(() => {
    if (location.hash === '#deny') focusDenial(denyHeading.current)
    if (location.hash === '#approve') approveHeading.current?.focus()
  }, [approveHeading, denyHeading])
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
          disabled={disabled || ids.length === 0}
          onDeny={(denial) => decision.mutate({ decision: 'deny', ids, ...denial })}
        />
      </section>
      <section aria-labelledby="edit-title">
        <h2 id="edit-title">Edit</h2>
        <Edit
          approval={approval}
          disabled={disabled}
          refused={decision.error instanceof ApiProblem ? decision.error.byField('args.') : {}}
          onEdit={(edited) => decision.mutate({ decision: 'approve', ids: [approval.id], ...edited })}
        />
      </section>
      <section aria-labelledby="approve-title">
        <h2 id="approve-title" ref={approveHeading} tabIndex={-1}>
          Approve
        </h2>
        <Approve
          approval={approval}
          chosen={card.chosen}
          disabled={disabled}
          armed={armed}
          onBack={disarm}
          onApprove={(grant) => decision.mutate({ decision: 'approve', ids, grant })}
        />
      </section>
      <DecisionBar
        approval={approval}
        chosen={card.chosen.length}
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
