import { ChevronDown, ChevronUp, type LucideIcon } from 'lucide-react'
import { useEffect, useMemo, useRef } from 'react'
import type { IncidentEvent } from '../../domain/event.ts'
import type { ClaimBeside } from '../../domain/hypothesis.ts'
import { listReadings } from '../../domain/message.ts'
import { Drawer } from '../drawer.tsx'
import { QuotedContext } from '../inert.tsx'
import { useKeys } from '../keys.tsx'
import { QueryState } from '../page-frame.tsx'
import { Link, navigate, usePlace } from '../router.tsx'
import { openRowOf, withRow } from './row-link.tsx'
import { getSign, useRow } from './rows.ts'
import { Entry, quotesOf } from './timeline.tsx'

type Props = {
  incidentId: string
  /** Rows that are already loaded. Any other row is read separately. */
  events: readonly IncidentEvent[]
  quotes: readonly ClaimBeside[]
  /** Number of the newest row. */
  last: number
  beganMs: number
}

/** Shows the row in the address (`?row=14`) as the log draws it, beside the page that cites it. */
export function RowDrawer(props: Props) {
  const seq = openRowOf(usePlace())
  return Number.isInteger(seq) && seq > 0 ? <OpenRow {...props} seq={seq} /> : null
}

function OpenRow({ incidentId, events, quotes, last, beganMs, seq }: Props & { seq: number }) {
  const place = usePlace()
  const { row, query } = useRow(incidentId, seq, events)
  const reading = useMemo(() => listReadings(events).get(seq), [events, seq])
  const own = quotes.filter((each) => each.seq === seq).map(({ text }) => text)
  const go = (to: number | null) => navigate(withRow(place, to), { replace: true })
  const before = seq > 1 ? () => go(Math.min(seq - 1, last)) : null
  const after = seq < last ? () => go(seq + 1) : null
  useKeys({ j: () => after?.(), k: () => before?.() })
  const tools = (
    <>
      <Step name="Previous row" go={before} Picture={ChevronUp} />
      <Step name="Next row" go={after} Picture={ChevronDown} />
    </>
  )
  return (
    <Drawer
      title={`Row ${seq} of ${last}${row ? ` · ${getSign(row).word}` : ''}`}
      onClose={() => go(null)}
      back={useOpener(seq)}
      tools={tools}
    >
      <p className="row between small">
        <Link href={`/incidents/${incidentId}#e-${seq}`}>Show in the log</Link>
        {own.length > 0 && <span className="soft">Underlined: the words quoted from this row</span>}
      </p>
      {!row && <QueryState query={query} what={`row ${seq}`} />}
      {!row && query.data && <p className="nothing">The log has no row {seq}.</p>}
      {row && (
        <QuotedContext value={toPattern(own)}>
          <ol className="timeline">
            <Entry key={seq} event={row} start={beganMs} isBeside {...(reading && { reading })} />
          </ol>
        </QuotedContext>
      )}
    </Drawer>
  )
}

/** Shows a button that stays even if it leads nowhere, so that it keeps the focus. */
function Step({ name, go, Picture }: { name: string; go: (() => void) | null; Picture: LucideIcon }) {
  return (
    <button type="button" className="bare" aria-label={name} aria-disabled={go === null} onClick={() => go?.()}>
      <Picture aria-hidden="true" />
    </button>
  )
}

/**
 * Returns the element that was pressed last, or the link of the row if the page loaded with the row
 * open. Another press moves the focus into the drawer again.
 */
function useOpener(seq: number): () => HTMLElement | null {
  const opener = useRef(document.activeElement)
  // biome-ignore lint/correctness/useExhaustiveDependencies: another row was asked for
  useEffect(() => {
    const { activeElement } = document
    if (activeElement === null || activeElement.closest('.drawer')) return
    opener.current = activeElement
    document.querySelector<HTMLElement>('.drawer h2')?.focus({ preventScroll: true })
  }, [seq])
  useEffect(() => {
    if (opener.current?.closest('a, button')) return
    // An element that is folded away takes no focus, and the body, where a page begins, is not a
    // target.
    const leads = [...document.querySelectorAll('a[aria-expanded="true"]')]
    opener.current = leads.find((each) => each.checkVisibility()) ?? null
  })
  return () => (opener.current?.isConnected ? (opener.current as HTMLElement) : document.querySelector('h1'))
}

/** Lists the quotes in claims and hypotheses, each with its row. */
export function listQuotes(events: readonly IncidentEvent[]): ClaimBeside[] {
  return events.flatMap((event): ClaimBeside[] => {
    if (event.kind === 'commented') return event.metadata.hypothesis?.quotes ?? []
    if (event.kind !== 'resolved') return []
    return event.metadata.claims.flatMap((claim) => [
      ...quotesOf(claim),
      ...('beside' in claim ? (claim.beside ?? []) : []),
    ])
  })
}

/**
 * Marks of JSON are separate tokens, because a quote may be on one line while the row is drawn on
 * many.
 */
const words = /[{}[\],:]|[^\s"'`\\{}[\],:]+/g

/**
 * Finds quotes as they were checked, ignoring case, blanks and quotation marks. Null if there is
 * nothing to find.
 */
function toPattern(quotes: readonly string[]): RegExp | null {
  const found = quotes.flatMap((quote) => {
    const parts = (quote.match(words) ?? []).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    return parts.length > 0 ? [parts.join('(?:\\\\n|[\\s"\'`\\\\]){0,40}')] : []
  })
  return found.length > 0 ? new RegExp(`(${found.sort((a, b) => b.length - a.length).join('|')})`, 'giu') : null
}
