import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import type { Approval, ApprovalDetail, DenialCategory } from '../../domain/approval.ts'
import { formatClock } from '../../domain/format.ts'
import { formatApprovalEnd, formatConsequences, formatReversible, listAnswers } from '../../domain/format-approval.ts'
import type { Surroundings } from '../../domain/incident-detail.ts'
import { ApiRefusal, ask, queryClient, useAsk } from '../api.ts'
import { Radios, TextArea, useDraft } from '../fields.tsx'
import { getRefusal } from '../incident/rows.ts'
import { Inert } from '../inert.tsx'
import { useKeys } from '../keys.tsx'
import { RiskMark } from '../marks.tsx'
import { Confirm } from '../page-frame.tsx'
import { missing } from '../permissions.ts'
import { Link, navigate } from '../router.tsx'
import { useSession } from '../session.ts'
import { formatMoment, useNow } from '../time.ts'
import { Approve } from './approve.tsx'
import type { Card } from './calls.tsx'
import { EditArguments } from './edit.tsx'
import { invalidateApproval, type useDecision } from './query.ts'

/** Always in sight: how long there is, how risky it is, and the way to each decision. Nothing here decides by itself. */
function DecisionBar({
  approval,
  chosen,
  refused,
  isArmed,
  onDeny,
  onApprove,
}: {
  approval: Approval
  /** How many calls of the card the decision is for. */
  chosen: number
  /** Why this person may not decide; null when they may. */
  refused: string | null
  isArmed: boolean
  onDeny(): void
  onApprove(): void
}) {
  const left = Date.parse(approval.expiresAt) - useNow()
  const isOff = refused !== null || chosen === 0
  const count = chosen > 1 ? ` ${chosen}` : ''
  return (
    <section className="decision-bar" aria-label="Decide">
      <div className="row">
        <span title={`until ${formatMoment(approval.expiresAt)}`}>
          <strong className="countdown">{formatClock(left)}</strong> left
        </span>
        <RiskMark risk={approval.risk} />
        <span className={approval.reversible ? 'soft' : 'tone-broken strong'}>
          {formatReversible(approval.reversible)}
        </span>
      </div>
      <div className="row buttons">
        <button type="button" disabled={isOff} onClick={onDeny}>
          Deny{count}…
        </button>
        <button
          type="button"
          className="main"
          disabled={isOff}
          aria-disabled={isArmed}
          onClick={() => !isArmed && onApprove()}
        >
          Approve{count}…
        </button>
        <MoreTime approval={approval} refused={refused} />
      </div>
    </section>
  )
}

function MoreTime({ approval, refused }: { approval: Approval; refused: string | null }) {
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => ask(`/approvals/${approval.id}/extend`, { method: 'POST' }),
    onSettled: () => invalidateApproval(approval.id),
  })
  return (
    <>
      <button
        type="button"
        className="small"
        disabled={isPending || refused !== null}
        title="At most until four hours after the request"
        onClick={() => mutate()}
      >
        +15 minutes
      </button>
      {error && (
        <span className="small tone-broken" role="alert">
          {error.message}
        </span>
      )}
    </>
  )
}

/** What each answer leads to, before anything else on the card; once it is over, what became of the platform. */
export function ConsequencesOrEnd({ approval }: { approval: Approval }) {
  const now = useNow()
  const left = Date.parse(approval.expiresAt) - now
  if (approval.status !== 'pending' || left <= 0) return <Over approval={approval} />
  return (
    <dl className="consequences">
      {listAnswers(formatConsequences(approval, formatMoment)).map(([name, text]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd className="wraps">
            <Inert text={text} />
          </dd>
        </div>
      ))}
    </dl>
  )
}

function Over({ approval }: { approval: Approval }) {
  const { status, expiresAt, incidentId } = approval
  const isExpired = status === 'expired' || status === 'pending'
  return (
    <div className={`said stack tight ${isExpired ? 'wrong' : ''}`} role="status">
      <p>
        <strong>{formatApprovalEnd({ status: isExpired ? 'expired' : status })}</strong>{' '}
        {isExpired && <span className="soft">It could be decided until {formatMoment(expiresAt)}.</span>}
      </p>
      {isExpired && <RequestAgain incidentId={incidentId} />}
    </div>
  )
}

/**
 * Asks for an expired action again. What was approved must be what is true now, so the agent looks again and asks only if the
 * action is still needed.
 */
function RequestAgain({ incidentId }: { incidentId: string }) {
  const surroundings = useAsk<Surroundings>(['surroundings', incidentId], `/incidents/${incidentId}/surroundings`)
  const refused = getRefusal(surroundings.data ?? null, 'investigate')
  const run = async () => {
    await ask(`/incidents/${incidentId}/investigate`, { method: 'POST' })
    await queryClient.invalidateQueries({ queryKey: ['incident', incidentId] })
    void queryClient.invalidateQueries({ queryKey: ['surroundings', incidentId] })
    navigate(`/incidents/${incidentId}`)
  }
  return (
    <div className="row">
      <Confirm button="Request again" label="this action" title="Request it again" refused={refused} run={run}>
        <p>
          The agent investigates again from the start. If the action is still needed, it makes a new dry run and asks
          again. You cannot approve critical actions of an investigation that you started.
        </p>
      </Confirm>
      <Link href={`/incidents/${incidentId}`}>See the incident</Link>
    </div>
  )
}

const categories: Record<DenialCategory, string> = {
  wrong_target: 'wrong target',
  too_risky: 'too risky',
  wrong_time: 'wrong time',
  need_evidence: 'need evidence',
  other: 'other',
}

const options = Object.entries(categories) as [DenialCategory, string][]

type DenialDraft = { category: DenialCategory; reason: string }

type DenyProps = { approval: Approval; disabled: boolean; onDeny(denial: DenialDraft): void }

/** A denial says why: the agent reads it, and the same action is not asked again in the group; or the person whose own write it is. */
function Deny({ approval: { id, askedBy }, disabled, onDeny }: DenyProps) {
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
        <legend>
          Why not?{' '}
          <Inert
            text={
              askedBy
                ? `It is in the log, for ${askedBy} to read.`
                : 'The agent reads it and does not ask for this again.'
            }
          />
        </legend>
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
          approval={approval}
          disabled={disabled || ids.length === 0}
          onDeny={(denial) => decision.mutate({ decision: 'deny', ids, ...denial })}
        />
      </section>
      <section aria-labelledby="edit-title">
        <h2 id="edit-title">Edit</h2>
        <EditArguments
          approval={approval}
          disabled={disabled}
          refused={decision.error instanceof ApiRefusal ? decision.error.byField('args.') : {}}
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
