import { memo, useState } from 'react'
import type { IncidentEvent } from '../../domain/event.ts'
import { formatElapsed } from '../../domain/format.ts'
import { isUnshown, notShown, rowsOf, type StoredClaim } from '../../domain/hypothesis.ts'
import { Exact, Inert, Markdown } from '../markdown.tsx'
import { Sign } from '../marks.tsx'
import { PlanOfProposal } from '../plan/plan.tsx'
import { Link } from '../router.tsx'
import { formatBothZones, formatTimeOfDay } from '../time.ts'
import { ReadingOf } from './reading.tsx'
import { getSign, listHighlights } from './rows.ts'

type Props = {
  event: IncidentEvent
  start: number
  isTarget: boolean
  raw?: boolean
  sameAs?: number | null
  reading?: string
}

/** More than this is folded: a row is a line until one wants to know. */
const foldedAt = 280

/** A row never changes: of a thousand only the new one is drawn. */
export const Entry = memo(function Entry({ event, start, isTarget, raw, sameAs = null, reading }: Props) {
  const [open, setOpen] = useState(isTarget)
  const { shape, tone, word } = getSign(event)
  const text = getText(event)
  const folded = text.length > foldedAt && !open ? `${text.slice(0, foldedAt)}…` : text
  const aside = [...listHighlights(event), ...(reading ? [reading] : [])]
  const proposalId = getProposalId(event)
  return (
    <li id={`e-${event.seq}`} className={`entry kind-${event.kind}`} aria-current={isTarget ? 'true' : undefined}>
      <a className="seq" href={`#e-${event.seq}`} title={`Link to row ${event.seq}`}>
        {event.seq}
      </a>
      <time dateTime={event.at} title={formatBothZones(event.at)}>
        {formatTimeOfDay(event.at)}
        <span className="soft"> {formatElapsed(Date.parse(event.at) - start)}</span>
      </time>
      <span className={`what tone-${tone}`}>
        <Sign shape={shape} />
        {word}
      </span>
      <div className="text">
        {raw ? (
          <Exact value={event} label={`Row ${event.seq} as stored`} />
        ) : (
          <>
            <div className="line">
              {sameAs !== null && !open ? (
                <p className="soft">
                  The same text as <a href={`#e-${sameAs}`}>row {sameAs}</a>
                </p>
              ) : isWritten(event) ? (
                <div className="stack tight">
                  <Markdown text={folded} />
                </div>
              ) : (
                <p className="wraps lines">
                  <Inert text={folded} />
                </p>
              )}
              <p className="aside soft small">
                <Inert text={[event.actor.replace(/^(agent|system):.*/, '$1'), ...aside].join(' · ')} />
                {event.kind === 'approval_requested' && (
                  <>
                    {' · '}
                    <Link href={`/approvals/${event.metadata.approvalId}`}>the approval</Link>
                  </>
                )}
                {' · '}
                <button type="button" className="bare" aria-expanded={open} onClick={() => setOpen(!open)}>
                  {open ? 'less' : 'more'}
                  <span className="visually-hidden"> of row {event.seq}</span>
                </button>
              </p>
            </div>
            {event.kind === 'resolved' && <Claims event={event} />}
            {proposalId && <PlanOfProposal id={proposalId} />}
            <ReadingOf event={event} beganMs={start} />
            {open && <Exact value={event.metadata} label={`Everything in row ${event.seq}`} />}
          </>
        )}
      </div>
    </li>
  )
})

/** Did a model write its text? Then it may hold Markdown. */
function isWritten({ kind, actor }: IncidentEvent): boolean {
  return ['model_answered', 'resolved', 'escalated', 'commented'].includes(kind) && actor.startsWith('agent:')
}

/** The row's sentence; of a model's turn what it wrote. */
export function getText(event: IncidentEvent): string {
  if (event.kind === 'model_answered') return event.metadata.final?.text || event.metadata.content || event.detail
  if (event.kind === 'tool_finished' && event.metadata.said) return event.metadata.said
  if (event.kind === 'call_judged') return `${event.detail}${event.metadata.hint ? ` ${event.metadata.hint}` : ''}`
  return event.detail
}

/** A plan that this row made: pictured where it appears first. */
export function getProposalId(event: IncidentEvent): string | null {
  if (event.kind !== 'tool_finished' || event.metadata.outcome !== 'done') return null
  const data = event.metadata.result.data as { proposal_id?: unknown; steps?: unknown } | undefined
  const has = data && typeof data.proposal_id === 'string' && Array.isArray(data.steps) && data.steps.length > 0
  return has ? (data.proposal_id as string) : null
}

/** What an ending claims, with links to the rows it rests on and a mark where they do not show it. */
export function Claims({ event }: { event: IncidentEvent<'resolved'> }) {
  const { claims } = event.metadata
  if (claims.length === 0) return null
  return (
    <ul className="claims">
      {claims.map((claim) => (
        <li key={claim.text}>
          <Inert text={claim.text} /> <Rows claim={claim} />
          {isUnshown(claim) && (
            <strong className="tone-warning" title={'why' in claim ? claim.why : undefined}>
              {' '}
              {notShown}
            </strong>
          )}
        </li>
      ))}
    </ul>
  )
}

function Rows({ claim }: { claim: StoredClaim }) {
  return (
    <span className="soft small">
      {rowsOf(claim).map((seq) => (
        <a key={seq} href={`#e-${seq}`} title={getQuotes(claim, seq)}>
          {' '}
          #{seq}
        </a>
      ))}
    </span>
  )
}

function getQuotes(claim: StoredClaim, seq: number): string {
  if (!('quotes' in claim)) return `Row ${seq}`
  return claim.quotes
    .filter((quote) => quote.seq === seq)
    .map(({ text }) => text)
    .join(' … ')
}
