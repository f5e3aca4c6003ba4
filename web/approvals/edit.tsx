import { useRef, useState } from 'react'
import type { Approval, ApprovalDetail } from '../../domain/approval.ts'
import { parseRehearsal, partTitles, type Rehearsal } from '../../domain/format-approval.ts'
import { ChangedText } from '../config/edit.tsx'
import { listChanges, type ValueChange } from '../differences.ts'
import { ReasonField, TextArea, useDraft } from '../fields.tsx'
import { Exact, Inert, TextBox } from '../inert.tsx'
import { Warning } from '../marks.tsx'
import { PageForm, Section } from '../page-frame.tsx'
import { PlanOfProposal } from '../plan/plan.tsx'
import { formatMoment } from '../time.ts'
import { getTextToType, SecondPress } from './approve.tsx'
import { ArgumentFields, type ArgumentsSchema, listFieldProblems } from './argument-fields.tsx'
import { AttachmentList } from './attachments.tsx'

/** Shows the expected effects, which were found before approval was requested. */
export function DryRun({ approval }: { approval: Approval }) {
  const { dryRun } = approval
  const rehearsal = parseRehearsal(dryRun.details)
  return (
    <Section title={partTitles.dryRun}>
      {dryRun.possible && <Preview approval={approval} />}
      {!dryRun.possible && <Warning text="This action has no dry run, so nobody knows beforehand what it will do." />}
      {dryRun.possible && Object.keys(dryRun.details).length === 0 && !dryRun.attachments && (
        <p className="soft">The dry run found no effect beyond the one in the title.</p>
      )}
      {rehearsal && <RehearsalFindings rehearsal={rehearsal} />}
      <AttachmentList approval={approval} />
      {dryRun.possible && <Details approval={approval} isRehearsed={rehearsal !== null} />}
    </Section>
  )
}

/** Shows a plan as a picture, and all data, which is open if no other text explains it. */
function Details({ approval, isRehearsed }: { approval: Approval; isRehearsed: boolean }) {
  const { details } = approval.dryRun
  const isAhead = approval.status === 'pending' || approval.status === 'approved'
  const { proposalId } = details
  return (
    <>
      {typeof proposalId === 'string' && <PlanOfProposal id={proposalId} played isAhead={isAhead} />}
      {Object.keys(details).length > 0 && (
        <details open={typeof proposalId !== 'string' && !isRehearsed}>
          <summary>Details as data</summary>
          <Exact value={details} label="Details of the dry run" />
        </details>
      )}
    </>
  )
}

/** Shows when the dry run was made, because a preview must never look like past events. */
function Preview({ approval: { status, requestedAt } }: { approval: Approval }) {
  const when = `made ${formatMoment(requestedAt)}`
  if (status === 'consumed')
    return <p className="soft">This preview was {when}. Another part of this card shows what was done.</p>
  if (status === 'pending' || status === 'approved')
    return <p className="soft">Preview of what would happen, {when}.</p>
  return (
    <p className="soft">
      Preview of what would have happened, {when}. <strong>This action was not done.</strong>
    </p>
  )
}

/**
 * Shows the findings of the dry run, line by line. A part that was not tried counts against the
 * call.
 */
function RehearsalFindings({ rehearsal: { lines } }: { rehearsal: Rehearsal }) {
  return lines.length > 0 && <TextBox label="What the dry run found" text={lines.join('\n')} />
}

type EditedCall = { args: Record<string, unknown>; reason: string }
type Props = {
  approval: ApprovalDetail
  disabled: boolean
  /** The API's error for each refused argument. */
  refused: Record<string, string>
  onEdit(edited: EditedCall): void
}

/**
 * Approves with other arguments. Shows exactly what changes, both while the person types and before
 * the second press.
 */
export function EditArguments(props: Props) {
  const [open, setOpen] = useState(false)
  if (open) return <EditForm {...props} onClose={() => setOpen(false)} />
  return (
    <div className="stack tight">
      <p className="soft">
        The changed call is checked, gets a dry run and is requested again. Your vote counts for the changed call.
      </p>
      <div>
        <button type="button" disabled={props.disabled} onClick={() => setOpen(true)}>
          Edit the arguments…
        </button>
      </div>
    </div>
  )
}

function EditForm({ approval, disabled, refused, onEdit, onClose }: Props & { onClose(): void }) {
  const [armed, setArmed] = useState(false)
  const [text, setText] = useState(() => write(approval.arguments))
  const [reason, setReason] = useDraft(`edit of ${approval.id}`)
  const opener = useRef<HTMLButtonElement>(null)
  const parsed = parseArguments(text)
  const made = parsed.ok ? listChanges(approval.arguments, parsed.value) : []
  const schema = approval.schema as ArgumentsSchema | null
  const [isRaw, setRaw] = useState(schema === null)
  // The errors of the API are about the arguments that were sent, and disappear when these change.
  const [sent, setSent] = useState('')
  const problems = parsed.ok && schema && !isRaw ? listFieldProblems(schema, parsed.value) : {}
  const isReady = parsed.ok && made.length > 0 && Object.keys(problems).length === 0
  const disarm = () => {
    setArmed(false)
    requestAnimationFrame(() => opener.current?.focus())
  }
  return (
    <PageForm className="stack" onSubmit={() => isReady && setArmed(true)}>
      <fieldset className="stack tight" disabled={disabled || armed}>
        <Fields
          schema={schema}
          text={text}
          parsed={parsed}
          isRaw={isRaw}
          refused={text === sent ? refused : {}}
          onText={setText}
          onRaw={() => setRaw(!isRaw)}
        />
        <div id="edit-changes" role="status" className="small">
          {!parsed.ok && <Warning text={parsed.problem} />}
          {parsed.ok && made.length === 0 && <p className="soft">Nothing is changed yet.</p>}
          {made.length > 0 && <Changes made={made} />}
        </div>
        <ReasonField id="edit-reason" label="Reason (recorded in the log)" value={reason} onChange={setReason} />
      </fieldset>
      {armed && parsed.ok ? (
        <SecondPress
          button="Yes, approve changes"
          mustType={getTextToType(approval)}
          disabled={disabled}
          onYes={() => {
            setSent(text)
            onEdit({ args: parsed.value, reason: reason.trim() })
          }}
          onBack={disarm}
        >
          <strong>
            Make {made.length === 1 ? 'this change' : `these ${made.length} changes`} to <Inert text={approval.tool} />?
          </strong>{' '}
          This approval is withdrawn. The changed call is requested again, and your vote counts for this call. If one
          vote is enough, it runs immediately.
        </SecondPress>
      ) : (
        <div className="row">
          <button type="submit" ref={opener} disabled={disabled || !isReady}>
            Approve with changes…
          </button>
          <button type="button" onClick={onClose}>
            Keep the arguments
          </button>
        </div>
      )}
    </PageForm>
  )
}

type FieldsProps = {
  schema: ArgumentsSchema | null
  text: string
  parsed: ReturnType<typeof parseArguments>
  isRaw: boolean
  refused: Record<string, string>
  onText(text: string): void
  onRaw(): void
}

/**
 * Shows a field for each argument if the schema is known and the text is valid JSON. Otherwise
 * shows the text. A button switches between them.
 */
function Fields({ schema, text, parsed, isRaw, refused, onText, onRaw }: FieldsProps) {
  return (
    <>
      {parsed.ok && schema && !isRaw ? (
        <ArgumentFields
          schema={schema}
          args={parsed.value}
          refused={refused}
          onChange={(args) => onText(write(args))}
        />
      ) : (
        <ArgumentsField text={text} onChange={onText} />
      )}
      {schema && (
        <div>
          <button type="button" className="bare small" disabled={!parsed.ok} onClick={onRaw}>
            {isRaw ? 'Edit as a form' : 'Edit as JSON'}
          </button>
        </div>
      )}
    </>
  )
}

const write = (args: Record<string, unknown>) => JSON.stringify(args, null, 2)

function ArgumentsField({ text, onChange }: { text: string; onChange(text: string): void }) {
  return (
    <TextArea
      id="edit-arguments"
      label="Arguments, as JSON"
      className="mono grows"
      rows={4}
      spellCheck={false}
      autoFocus
      value={text}
      aria-describedby="edit-changes"
      onChange={onChange}
    />
  )
}

/** Shows the former value, crossed out, and the new one. */
export function Changes({ made }: { made: ValueChange[] }) {
  return (
    <ul className="changes">
      {made.map(({ path, from, to }) => (
        <li key={path} className="wraps">
          <Inert as="code" text={path || 'everything'} />{' '}
          {from !== undefined && <ChangedText sign="-" text={JSON.stringify(from)} />}{' '}
          {to !== undefined ? (
            <ChangedText sign="+" text={JSON.stringify(to)} />
          ) : (
            <span className="soft">left out</span>
          )}
        </li>
      ))}
    </ul>
  )
}

type ParsedArguments = { ok: true; value: Record<string, unknown> } | { ok: false; problem: string }

function parseArguments(text: string): ParsedArguments {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return { ok: true, value: value as Record<string, unknown> }
    }
    return { ok: false, problem: 'Write the arguments as a JSON object: { "name": value }.' }
  } catch (error) {
    return { ok: false, problem: `Not JSON yet: ${(error as Error).message}` }
  }
}
