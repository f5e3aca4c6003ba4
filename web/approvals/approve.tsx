import { type InputHTMLAttributes, type ReactNode, useEffect, useRef, useState } from 'react'
import type { Approval, ApprovalDetail } from '../../domain/approval.ts'
import { capitalize } from '../../domain/format.ts'
import { formatHostToSay, hostsToSay } from '../../domain/format-death.ts'
import type { GrantWish } from '../../domain/grant.ts'
import { CheckField } from '../fields.tsx'
import { Inert, inertText } from '../inert.tsx'

type Props = {
  approval: ApprovalDetail
  /** The ticked calls of this card. */
  chosen: Approval[]
  grant: GrantWish | null
  disabled: boolean
  onBack(): void
  onApprove(grant: GrantWish | null, hostIsOff: string[]): void
}

/** Shows the second of two presses in place of the first, with the action described once more. */
export function Approve({ approval, chosen, grant, disabled, onBack, onApprove }: Props) {
  const isChosen = chosen.some(({ id }) => id === approval.id)
  const toSay = isChosen ? hostsToSay(approval.deaths) : []
  const [off, setOff] = useState<string[]>([])
  const said = toSay.filter((host) => off.includes(host))
  return (
    <SecondPress
      button={chosen.length > 1 ? `Yes, approve ${chosen.length}` : 'Yes, approve'}
      mustType={isChosen ? getTextToType(approval) : null}
      disabled={disabled || said.length < toSay.length}
      onYes={() => onApprove(isChosen ? grant : null, said)}
      onBack={onBack}
      more={toSay.map((host) => (
        <CheckField
          key={host}
          checked={said.includes(host)}
          onChange={(isOff) => setOff(isOff ? [...said, host] : said.filter((each) => each !== host))}
        >
          <Inert text={formatHostToSay(host)} />
        </CheckField>
      ))}
    >
      <strong>{nameChosen(chosen)} now?</strong> Runs{' '}
      {approval.required - approval.approvals > 1 ? 'as soon as another person approves it' : 'immediately'} and is
      recorded under your name.
      {grant && isChosen && (
        <>
          {' '}
          The same action may then run {grant.uses === 1 ? 'once more' : `${grant.uses} more times`} within{' '}
          {grant.hours} h, <strong>without approval</strong>.
        </>
      )}
    </SecondPress>
  )
}

/** Describes each approval that will be given with its sentence. */
function nameChosen(chosen: readonly Approval[]): string {
  return capitalize(chosen.map(({ dryRun }) => inertText(dryRun.summary)).join('; then '))
}

/** Returns the name of the target, which a person types before approving a critical action. */
export function getTextToType({ risk, targets }: Pick<Approval, 'risk' | 'targets'>): string | null {
  const target = targets.find(({ kind }) => kind !== 'proposal') ?? targets[0]
  return risk === 'critical' && target ? target.id : null
}

const usual: GrantWish = { uses: 3, hours: 4 }

/**
 * Shows fields that allow the same action to run again without approval: how often and how long.
 */
export function GrantFields({
  refused,
  disabled,
  wish,
  onWish,
}: {
  refused: string | null
  disabled: boolean
  wish: GrantWish | null
  onWish(wish: GrantWish | null): void
}) {
  const { uses, hours } = wish ?? usual
  return (
    <fieldset className="stack tight" disabled={disabled}>
      <CheckField
        checked={wish !== null}
        disabled={refused !== null}
        aria-describedby="grant-why"
        onChange={(isOn) => onWish(isOn ? usual : null)}
      >
        Pre-approve identical actions
      </CheckField>
      <p id="grant-why" className="soft">
        <Inert text={refused ?? 'The same arguments on the same state, in any incident. Revocable at any time.'} />
      </p>
      {wish && (
        <div className="row">
          <NumberField label="Times" min={1} max={20} value={uses} onNumber={(next) => onWish({ hours, uses: next })} />
          <NumberField
            label="within hours"
            min={0.25}
            max={8}
            step={0.25}
            value={hours}
            onNumber={(next) => onWish({ uses, hours: next })}
          />
        </div>
      )}
    </fieldset>
  )
}

type NumberProps = InputHTMLAttributes<HTMLInputElement> & { label: string; onNumber(number: number): void }

function NumberField({ label, onNumber, ...rest }: NumberProps) {
  return (
    <label className="row">
      {label}
      <input type="number" required {...rest} onChange={({ target }) => onNumber(target.valueAsNumber)} />
    </label>
  )
}

/** Milliseconds between the presses, so that no double click or held key reaches the second. */
const deliberateMs = 800

/**
 * Shows the second of two presses, at another place than the first. The focus is on the description
 * and not on its button. If `mustType` is set, a person also types this text.
 */
export function SecondPress({
  children,
  more = null,
  button,
  mustType,
  disabled,
  onYes,
  onBack,
}: {
  children: ReactNode
  /** Additional required fields. */
  more?: ReactNode
  button: string
  mustType: string | null
  disabled: boolean
  onYes(): void
  onBack(): void
}) {
  const [ready, setReady] = useState(false)
  const [typed, setTyped] = useState('')
  const question = useRef<HTMLParagraphElement>(null)
  useEffect(() => {
    question.current?.focus()
    question.current?.closest('fieldset')?.scrollIntoView({ block: 'nearest' })
    // Keeps the second click of a double click from moving the focus away from the description.
    const stay = (event: MouseEvent) => event.preventDefault()
    const letGo = () => document.removeEventListener('mousedown', stay, true)
    document.addEventListener('mousedown', stay, true)
    const timer = setTimeout(() => {
      letGo()
      setReady(true)
    }, deliberateMs)
    return () => {
      letGo()
      clearTimeout(timer)
    }
  }, [])
  const isRight = mustType === null || typed.trim() === mustType
  return (
    <fieldset className="tray" aria-label="Second press">
      <p ref={question} tabIndex={-1} className="wraps">
        {children}
      </p>
      {more}
      {mustType !== null && (
        <label className="stack tight">
          <span>
            Type <code>{inertText(mustType)}</code> to go on
          </span>
          <input type="text" autoComplete="off" value={typed} onChange={(event) => setTyped(event.target.value)} />
        </label>
      )}
      <div className="row">
        <button type="button" onClick={onBack}>
          Back
        </button>
        <button type="button" className="main" disabled={disabled || !ready || !isRight} onClick={onYes}>
          {button}
        </button>
      </div>
    </fieldset>
  )
}
