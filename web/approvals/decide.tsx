import { useMutation } from '@tanstack/react-query'
import { type RefObject, useEffect, useRef, useState } from 'react'
import type { Approval, ApprovalDetail, DenialCategory } from '../../domain/approval.ts'
import { formatApprovers, formatCost, formatOldLook, newestLookOf } from '../../domain/card-sections.ts'
import { formatClock, nextTimeOfDay } from '../../domain/format.ts'
import { formatApprovalEnd, formatReversible } from '../../domain/format-approval.ts'
import { formatDispute } from '../../domain/format-death.ts'
import type { GrantWish } from '../../domain/grant.ts'
import type { DetailedIncident, Surroundings } from '../../domain/incident-detail.ts'
import { ApiRefusal, ask, readAgain, useAsk, useWatchedServer } from '../api.ts'
import { Radios, TextArea, TextField, useDraft } from '../fields.tsx'
import { getRefusal } from '../incident/rows.ts'
import { Inert } from '../inert.tsx'
import { useKeys } from '../keys.tsx'
import { RiskMark } from '../marks.tsx'
import { Confirm, PageForm, Section } from '../page-frame.tsx'
import { useMissing } from '../permissions.ts'
import { Link, navigate } from '../router.tsx'
import { useSession } from '../session.ts'
import { formatMoment, useNow } from '../time.ts'
import { Approve, GrantFields } from './approve.tsx'
import type { Card } from './calls.tsx'
import { EditArguments } from './edit.tsx'
import { invalidateApproval, type useDecision } from './query.ts'

type Decided = ReturnType<typeof useDecision>

/** A decision in progress, whose parts are in two places of the card. */
type Deciding = {
  approval: ApprovalDetail
  card: Card
  decision: Decided
  /** The reason why this person may not decide. Null if the person may. */
  refused: string | null
  isOff: boolean
  /** The open form above the bar: the form of a denial, or the second press. */
  open: 'deny' | 'approve' | null
  setOpen(open: Deciding['open']): void
  /** True if a press opened the form, which then takes the focus. */
  wasPressed: boolean
  grant: GrantWish | null
  setGrant(grant: GrantWish | null): void
  grantForm: RefObject<HTMLFormElement | null>
  approveHeading: RefObject<HTMLHeadingElement | null>
}

/** Prepares the decision. Null if nothing is left to decide. */
export function useDeciding(approval: ApprovalDetail, card: Card, decision: Decided): Deciding | null {
  const [draft] = useDraft(denialOf(approval))
  const [chosenBefore] = useDraft(categoryOf(approval))
  // A denial that is half written stays open, and so does one that a link opens.
  const isLinked = location.hash === '#deny'
  const [open, show] = useState<Deciding['open']>(`${draft}${chosenBefore}` !== '' || isLinked ? 'deny' : null)
  const [wasPressed, setPressed] = useState(isLinked)
  const [grant, setGrant] = useState<GrantWish | null>(null)
  const grantForm = useRef<HTMLFormElement>(null)
  const approveHeading = useRef<HTMLHeadingElement>(null)
  const lacking = useMissing('decide')
  const refused = lacking && `${lacking} You can read everything here.`
  useWatchedServer(open !== null)
  const setOpen = (next: Deciding['open']) => {
    setPressed(true)
    show(next)
    document.querySelector<HTMLInputElement>('input[name="denial"]')?.focus()
  }
  useKeys({
    a: () => approveHeading.current?.focus(),
    d: () => refused === null && setOpen('deny'),
  })
  useEffect(() => {
    if (decision.isSuccess) show(null)
  }, [decision.isSuccess])
  // Sets the focus without scrolling: the incident page links here, and the text above should be
  // read first.
  useEffect(() => {
    if (location.hash === '#approve') approveHeading.current?.focus({ preventScroll: true })
  }, [])
  if (!card.open.some(({ id }) => id === approval.id)) return null
  const isOff = decision.isPending || refused !== null
  const sheet = { open, setOpen, wasPressed }
  return { approval, card, decision, refused, isOff, ...sheet, grant, setGrant, grantForm, approveHeading }
}

const denialOf = ({ id }: Approval) => `denial of ${id}`
const categoryOf = ({ id }: Approval) => `category of ${id}`

/**
 * Shows options besides yes and no: other arguments, and a grant. A person sets the options before
 * the first press.
 */
export function Ways({ deciding }: { deciding: Deciding }) {
  const { approval, decision, refused, isOff, open, grant, setGrant, grantForm, approveHeading } = deciding
  return (
    <>
      <Section title="Edit">
        <EditArguments
          approval={approval}
          disabled={isOff}
          refused={decision.error instanceof ApiRefusal ? decision.error.byField('args.') : {}}
          onEdit={(edited) => decision.mutate({ decision: 'approve', ids: [approval.id], ...edited })}
        />
      </Section>
      <section>
        <h2 ref={approveHeading} tabIndex={-1}>
          Approve
        </h2>
        <form ref={grantForm} onSubmit={(event) => event.preventDefault()}>
          <GrantFields
            refused={approval.grantRefused}
            disabled={isOff || open === 'approve'}
            wish={grant}
            onWish={setGrant}
          />
        </form>
        {refused === null && (
          <p className="soft">
            <Inert text={formatDispute(approval.deaths) ?? '“Approve…” below asks you to confirm first.'} />
          </p>
        )}
      </section>
    </>
  )
}

type FootProps = { deciding: Deciding; incident: DetailedIncident | null }

/**
 * Shows, always visible, the remaining time, the worst cost, who can decide, and a button for each
 * decision. Decides nothing by itself.
 */
export function Foot({ deciding, incident }: FootProps) {
  const { approval, card, decision, refused, isOff, open, setOpen, grant, grantForm, approveHeading } = deciding
  const { chosen } = card
  // Decides the last call first. When the first call is approved and the run continues, all calls
  // are already decided.
  const ids = chosen.map(({ id }) => id).reverse()
  const isNone = ids.length === 0
  const barred = chosen.some(({ id }) => id === approval.id) ? formatDispute(approval.deaths) : null
  const count = ids.length > 1 ? ` ${ids.length}` : ''
  const denyButton = useRef<HTMLButtonElement>(null)
  const close = (focus: RefObject<HTMLElement | null>) => {
    setOpen(null)
    requestAnimationFrame(() => focus.current?.focus({ preventScroll: true }))
  }
  const isArmed = decision.isPending || open === 'approve'
  return (
    <section className="decide" aria-label="Decide">
      {decision.error && <DecisionProblem text={decision.error.message} />}
      {open === 'deny' && (
        <Deny
          approval={approval}
          disabled={isOff || isNone}
          takesFocus={deciding.wasPressed}
          onBack={() => close(denyButton)}
          onDeny={(denial) => decision.mutate({ decision: 'deny', ids, ...denial })}
        />
      )}
      {open === 'approve' && (
        <Approve
          approval={approval}
          chosen={chosen}
          grant={grant}
          disabled={isOff || isNone || barred !== null}
          onBack={() => close(approveHeading)}
          onApprove={(wish, hostIsOff) => decision.mutate({ decision: 'approve', ids, grant: wish, hostIsOff })}
        />
      )}
      <Stakes approval={approval} chosen={chosen} incident={incident} refused={refused ?? barred} />
      <p className="presses">
        <button type="button" ref={denyButton} disabled={refused !== null || isNone} onClick={() => setOpen('deny')}>
          Deny{count}…
        </button>
        <MoreTime approval={approval} refused={refused} />
        <button
          type="button"
          className="main"
          disabled={refused !== null || isNone || barred !== null}
          aria-disabled={isArmed}
          onClick={() => !isArmed && (grantForm.current?.reportValidity() ?? true) && setOpen('approve')}
        >
          Approve{count}…
        </button>
      </p>
    </section>
  )
}

type StakesProps = Omit<FootProps, 'deciding'> & {
  approval: ApprovalDetail
  chosen: Approval[]
  refused: string | null
}

/**
 * Shows the remaining time, the worst cost and risk of the ticked calls, who can decide, and the
 * owner of the incident.
 */
function Stakes({ approval, chosen, incident, refused }: StakesProps) {
  const { data: session } = useSession()
  const left = Date.parse(approval.expiresAt) - useNow()
  const costs = new Set([
    ...formatOldLook(newestLookOf(approval.evidence), approval.requestedAt, formatMoment),
    ...(chosen.length > 0 ? chosen : [approval]).map(formatCost),
  ])
  const { required, approvals, risk, reversible } = approval
  return (
    <div className="stakes">
      <p>
        <span className="left" title={`until ${formatMoment(approval.expiresAt)}`}>
          <strong className="countdown">{formatClock(left)}</strong> left
        </span>{' '}
        <Inert as="strong" className="cost" text={[...costs].join(' ')} />
      </p>
      <p className="small">
        <RiskMark risk={risk} />, {formatReversible(reversible)}.{' '}
        {refused ?? `Your role (${session?.role}) may decide.`}
        {required > 1 && ` ${approvals} of ${required} people have approved.`}{' '}
        <Inert text={formatApprovers(approval.approvers, approval.asked)} />
        {incident && (
          <>
            {' '}
            Owner of the incident: <Inert text={incident.owner?.name ?? 'nobody'} />.
          </>
        )}
      </p>
    </div>
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
        disabled={isPending || refused !== null}
        title="You can extend the deadline to four hours after the request at the latest"
        onClick={() => mutate()}
      >
        +15 minutes
      </button>
      {error && (
        <span className="small" role="alert">
          {error.message}
        </span>
      )}
    </>
  )
}

export function useIsOpen({ status, expiresAt }: Approval): boolean {
  const now = useNow()
  return status === 'pending' && Date.parse(expiresAt) > now
}

/** Shows the outcome of an approval that has ended. */
export function Over({ approval }: { approval: Approval }) {
  const { status, expiresAt, incidentId } = approval
  if (useIsOpen(approval)) return null
  const isExpired = status === 'expired' || status === 'pending'
  return (
    <section role="status">
      <p>
        <strong>{formatApprovalEnd({ status: isExpired ? 'expired' : status })}</strong>{' '}
        {isExpired && <span className="soft">The deadline was {formatMoment(expiresAt)}.</span>}
      </p>
      {isExpired && <RequestAgain incidentId={incidentId} />}
    </section>
  )
}

/**
 * Requests an expired action again. An approval must fit the current state, so the agent checks
 * first, and requests it only if it is still needed.
 */
function RequestAgain({ incidentId }: { incidentId: string }) {
  const surroundings = useAsk<Surroundings>(['surroundings', incidentId], `/incidents/${incidentId}/surroundings`)
  const refused = getRefusal(surroundings.data ?? null, 'investigate')
  const run = async () => {
    await ask(`/incidents/${incidentId}/investigate`, { method: 'POST' })
    await readAgain(['incident', incidentId])
    void readAgain(['surroundings', incidentId])
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
      <Link href={`/incidents/${incidentId}`}>Open the incident</Link>
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

type DenialDraft = { category: DenialCategory; reason: string; askAgainAt: string | null }

type DenyProps = {
  approval: Approval
  disabled: boolean
  takesFocus: boolean
  onBack(): void
  onDeny(denial: DenialDraft): void
}

/**
 * Asks for the reason of a denial. The agent reads the reason, or, for a person's own write, that
 * person reads it. The group does not get the same request again.
 */
function Deny({ approval, disabled, takesFocus, onBack, onDeny }: DenyProps) {
  const { askedBy } = approval
  const [chosen, setKind] = useDraft(categoryOf(approval))
  const kind = options.find(([each]) => each === chosen)?.[0] ?? null
  const [text, setText] = useDraft(denialOf(approval))
  const [again, setAgain] = useState('')
  const form = useRef<HTMLFormElement>(null)
  // Focuses the first field of a denial, never a button that sends it.
  useEffect(() => {
    if (takesFocus) form.current?.querySelector('input')?.focus()
  }, [takesFocus])
  const submit = () => {
    if (!kind) return
    const [hours, minutes] = again.split(':').map(Number)
    const askAgainAt = again ? nextTimeOfDay(hours ?? 0, minutes ?? 0, new Date()).toISOString() : null
    onDeny({ category: kind, reason: text.trim() || categories[kind], askAgainAt })
  }
  return (
    <PageForm ref={form} className="tray" onSubmit={submit} aria-labelledby="deny-title">
      <h2 id="deny-title">Deny</h2>
      <fieldset className="stack tight" disabled={disabled}>
        <legend>
          Why do you deny this action?{' '}
          <Inert
            text={
              askedBy
                ? `Your reason is recorded in the log. ${askedBy} can read it.`
                : 'The agent reads your reason and does not ask for this action again.'
            }
          />
        </legend>
        <Radios name="denial" options={options} value={kind} onChange={setKind} />
        <TextArea
          id="denial-text"
          label={`In your words${kind === 'other' ? '' : ' (optional)'}`}
          rows={2}
          maxLength={1900}
          required={kind === 'other'}
          value={text}
          onChange={setText}
        />
        {!askedBy && (
          <TextField
            id="denial-again"
            type="time"
            label="Ask again at (empty: do not ask again)"
            value={again}
            onChange={setAgain}
          />
        )}
        <div className="row">
          <button type="button" onClick={onBack}>
            Back
          </button>
          <button type="submit">Deny</button>
        </div>
      </fieldset>
    </PageForm>
  )
}

export function DecisionProblem({ text }: { text: string }) {
  return (
    <p className="problem" role="alert">
      {text}
    </p>
  )
}
