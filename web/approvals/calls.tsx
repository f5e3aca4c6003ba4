import { useState } from 'react'
import type { Approval, ApprovalDetail, CallRun, NextCall } from '../../domain/approval.ts'
import { formatProof } from '../../domain/card-sections.ts'
import type { EventKind } from '../../domain/event.ts'
import { capitalize, formatSpan } from '../../domain/format.ts'
import { formatNextCall, formatReversible, formatRunOutcome, partTitles } from '../../domain/format-approval.ts'
import { byCall } from '../../domain/step-key.ts'
import { readAgain } from '../api.ts'
import { CheckField } from '../fields.tsx'
import { RowLink } from '../incident/row-link.tsx'
import { Exact, Inert, TextBox } from '../inert.tsx'
import { useLive } from '../live.tsx'
import { ApprovalMark, RiskMark, Sign } from '../marks.tsx'
import { Section } from '../page-frame.tsx'
import { Link } from '../router.tsx'
import { useNow } from '../time.ts'

const runKinds: ReadonlySet<EventKind> = new Set<EventKind>([
  ...(['tool_started', 'step_started', 'step_finished', 'tool_output', 'tool_finished', 'verification'] as const),
])

/** Reads the card again when steps of its call become rows of the incident. */
export function useRunNews(approvalId: string, incidentId: string | undefined): void {
  useLive((event) => {
    if (event.incidentId === incidentId && runKinds.has(event.kind)) void readAgain(['approval', approvalId])
  })
}

const stepSigns = {
  waiting: { shape: 'ring', tone: 'quiet' },
  running: { shape: 'arrow', tone: 'work' },
  done: { shape: 'check', tone: 'proved' },
  failed: { shape: 'cross', tone: 'broken' },
  skipped: { shape: 'bar', tone: 'ink' },
} as const satisfies Record<CallRun['steps'][number]['state'], object>

/** Shows the steps of the approved call while it runs, and how it ended. */
export function CallRunSteps({ run }: { run: CallRun }) {
  const { steps, output, verification, said, startedAt, endedAt, rows } = run
  const now = useNow()
  const took = (endedAt === null ? now : Date.parse(endedAt)) - Date.parse(startedAt)
  const isGood = run.outcome === 'done' && verification?.outcome === 'held'
  const isBad = run.outcome === 'failed' || run.outcome === 'indeterminate' || verification?.outcome === 'not_held'
  return (
    <Section className="run" id="run-title" title={endedAt === null ? partTitles.running : partTitles.ran}>
      <p className="wraps">
        <span role="status">
          <strong className={isGood ? 'tone-proved' : isBad ? 'tone-broken' : ''}>{formatRunOutcome(run)}</strong>{' '}
          <Inert text={capitalize(said)} />
        </span>{' '}
        <span className="soft">
          {endedAt === null ? 'since' : 'in'} {formatSpan(took)}{' '}
          {rows.map((seq) => (
            <RowLink key={seq} className="chip" seq={seq} />
          ))}
        </span>
      </p>
      {steps.length > 0 && <RunSteps steps={steps} />}
      {output.length > 0 && <TextBox label="The last lines of its output" text={output.join('\n')} />}
      {verification && (
        <p className="wraps">
          Checked afterwards: <Inert text={verification.text} />
        </p>
      )}
    </Section>
  )
}

function RunSteps({ steps }: Pick<CallRun, 'steps'>) {
  return (
    <ol className="steps">
      {steps.map(({ step, text, state, detail }) => (
        <li key={step} aria-current={state === 'running' ? 'step' : undefined}>
          <span className={`tone-${stepSigns[state].tone}`}>
            <Sign shape={stepSigns[state].shape} /> {state}
          </span>{' '}
          <span>
            <Inert text={text} /> {state === 'failed' && <Inert className="soft" text={detail} />}
          </span>
        </li>
      ))}
    </ol>
  )
}

/**
 * Lists other calls of the same model response for which approval was not yet requested. Each call
 * is judged in turn.
 */
export function NextCalls({ next }: { next: NextCall[] }) {
  if (next.length === 0) return null
  return (
    <Section title={partTitles.next}>
      <ul>
        {next.map((call) => (
          <Inert key={call.callId} as="li" text={capitalize(formatNextCall(call))} />
        ))}
      </ul>
      <p className="soft">
        This approval covers none of these calls. Code judges each call right before the call runs, and asks people if
        needed.
      </p>
    </Section>
  )
}

/**
 * The calls of one model response that share a card, and which of them are selected for the
 * decision.
 */
export type Card = {
  /** The calls that can be decided now, including this call, in the order of execution. */
  open: Approval[]
  /** The ticked calls of `open`. */
  chosen: Approval[]
  tick(id: string, isTicked: boolean): void
}

/** Ticks only the opened approval at first, so that no button approves another call. */
export function useCard(approval: ApprovalDetail): Card {
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set([approval.id]))
  const now = useNow()
  const isOpen = ({ status, expiresAt }: Approval) => status === 'pending' && Date.parse(expiresAt) > now
  const open = [approval, ...approval.together].filter(isOpen).sort(byCall)
  return {
    open,
    chosen: open.filter(({ id }) => ticked.has(id)),
    tick(id, isTicked) {
      const next = new Set(ticked)
      if (isTicked) next.add(id)
      else next.delete(id)
      setTicked(next)
    },
  }
}

/**
 * Lists the approvals for the same model response, each with a check box. Empty if there is only
 * one approval.
 */
export function Together({ approval, card, isLocked }: { approval: ApprovalDetail; card: Card; isLocked: boolean }) {
  if (approval.together.length === 0) return null
  const all = [approval, ...approval.together].sort(byCall)
  return (
    <Section title={`The agent asks for ${all.length} actions at once`}>
      {card.open.length > 1 && (
        <p className="soft">
          You decide about the ticked actions; the others keep waiting. The actions run in this order. Code checks each
          action again right before the action runs. If an action fails, the agent asks for approval of the next action
          again.
        </p>
      )}
      <ol className="together">
        {all.map((each) => (
          <TogetherRow
            key={each.id}
            each={each}
            isThis={each.id === approval.id}
            isOpen={card.open.includes(each)}
            isTicked={card.chosen.includes(each)}
            isLocked={isLocked}
            onTick={(isTicked) => card.tick(each.id, isTicked)}
          />
        ))}
      </ol>
    </Section>
  )
}

type RowProps = {
  each: Approval
  isThis: boolean
  isOpen: boolean
  isTicked: boolean
  isLocked: boolean
  onTick(isTicked: boolean): void
}

/**
 * A critical call can be ticked only on its own card, where a person types the name of its target.
 */
function TogetherRow({ each, isThis, isOpen, isTicked, isLocked, onTick }: RowProps) {
  const what = <Inert as="strong" className="wraps" text={capitalize(each.dryRun.summary)} />
  const isElsewhere = each.risk === 'critical' && !isThis
  return (
    <li>
      {isOpen && !isElsewhere ? (
        <CheckField checked={isTicked} disabled={isLocked} onChange={onTick}>
          {what}
        </CheckField>
      ) : (
        what
      )}
      <p className="row">
        <RiskMark risk={each.risk} />
        <span className={each.reversible ? 'soft' : 'strong'}>{formatReversible(each.reversible)}</span>
        {!isOpen && <ApprovalMark status={each.status} />}
        {isThis ? (
          <span className="soft">this card</span>
        ) : (
          <Link href={`/approvals/${each.id}`}>
            {isOpen && isElsewhere ? 'Open this action to decide' : 'Page of this action'}
          </Link>
        )}
      </p>
      {!isThis && (
        <details>
          <summary>Exact arguments, and the check afterwards</summary>
          <Exact value={each.arguments} label={`Exact arguments of ${each.id}`} />
          <Inert as="p" className="wraps" text={formatProof(each.dryRun.proof)} />
        </details>
      )}
    </li>
  )
}
