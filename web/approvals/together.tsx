import { useState } from 'react'
import type { Approval, ApprovalDetail } from '../../domain/approval.ts'
import { capitalize } from '../../domain/format.ts'
import { formatProof } from '../../domain/format-approval.ts'
import { parseCallId } from '../../domain/step-key.ts'
import { Exact, Inert } from '../markdown.tsx'
import { ApprovalMark, RiskMark } from '../marks.tsx'
import { Link } from '../router.tsx'
import { useNow } from '../time.ts'

/** The calls of one answer that share a card, and for which of them the decision is. */
export type Card = {
  /** Those that can be decided now, this approval among them, in the order in which they would run. */
  open: Approval[]
  /** Those of `open` that are ticked. */
  chosen: Approval[]
  tick(id: string, isTicked: boolean): void
}

/** At first only the approval that was opened is ticked: nobody agrees to a call by pressing a button for another. */
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

function byCall(a: Approval, b: Approval): number {
  return (parseCallId(a.callId)?.call ?? 0) - (parseCallId(b.callId)?.call ?? 0)
}

/** What the same answer asks together, each with its own tick. Nothing where it asks one thing. */
export function Together({ approval, card, isLocked }: { approval: ApprovalDetail; card: Card; isLocked: boolean }) {
  if (approval.together.length === 0) return null
  const all = [approval, ...approval.together].sort(byCall)
  return (
    <section className="stack tight" aria-labelledby="together-title">
      <h2 id="together-title">This answer asks for {all.length} things</h2>
      {card.open.length > 1 && (
        <p className="soft">
          Your decision is for what is ticked; the rest goes on waiting. They run in this order, and each is checked
          again right before it runs. Where one fails, the next is asked again.
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
    </section>
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

/** A critical call is ticked on its own card alone, where the name of its target is typed. */
function TogetherRow({ each, isThis, isOpen, isTicked, isLocked, onTick }: RowProps) {
  const what = <Inert text={capitalize(each.dryRun.summary)} />
  const isElsewhere = each.risk === 'critical' && !isThis
  return (
    <li className="stack tight">
      {isOpen && !isElsewhere ? (
        <label className="choice">
          <input
            type="checkbox"
            checked={isTicked}
            disabled={isLocked}
            onChange={(event) => onTick(event.target.checked)}
          />
          <strong className="wraps">{what}</strong>
        </label>
      ) : (
        <strong className="wraps">{what}</strong>
      )}
      <p className="row small">
        <RiskMark risk={each.risk} />
        <span className={each.reversible ? 'soft' : 'tone-critical strong'}>
          {each.reversible ? 'reversible' : 'cannot be undone'}
        </span>
        {!isOpen && <ApprovalMark status={each.status} />}
        {isThis ? (
          <span className="soft">shown below</span>
        ) : (
          <Link href={`/approvals/${each.id}`}>
            {isOpen && isElsewhere ? 'Decide it on its own card' : 'Its own card'}
          </Link>
        )}
      </p>
      {!isThis && (
        <details className="small">
          <summary>Exact arguments, and what will prove it</summary>
          <Exact value={each.arguments} label={`Exact arguments of ${each.id}`} />
          <p className="wraps">
            <Inert text={formatProof(each.dryRun.proof)} />
          </p>
        </details>
      )}
    </li>
  )
}
