import type { Approval } from '../../domain/approval.ts'
import { capitalize } from '../../domain/format.ts'
import { parseRehearsal, type Rehearsal } from '../../domain/format-approval.ts'
import { Exact, Inert } from '../inert.tsx'
import { PlanOfProposal, StaysDownInDryRun } from '../plan/plan.tsx'
import { formatMoment } from '../time.ts'

/** What would happen, as it was found out before anybody was asked. */
export function DryRun({ approval }: { approval: Approval }) {
  const { dryRun, status } = approval
  const rehearsal = parseRehearsal(dryRun.details)
  return (
    <section className="stack tight">
      <h2>Dry run</h2>
      <Preview approval={approval} />
      {status !== 'pending' && <StaysDownInDryRun details={dryRun.details} />}
      {dryRun.possible ? (
        <p className="wraps">
          <Inert text={capitalize(dryRun.summary)} />
        </p>
      ) : (
        <p className="said wrong">There is none for this action: nobody knows beforehand what it will do.</p>
      )}
      {rehearsal && <RehearsalFindings rehearsal={rehearsal} />}
      {dryRun.possible && <Details details={dryRun.details} isRehearsed={rehearsal !== null} />}
    </section>
  )
}

/** A plan as a picture, and everything as data: open where nothing else says it. */
function Details({ details, isRehearsed }: { details: Record<string, unknown>; isRehearsed: boolean }) {
  const { proposalId } = details
  return (
    <>
      {typeof proposalId === 'string' && <PlanOfProposal id={proposalId} played />}
      {Object.keys(details).length > 0 && (
        <details open={typeof proposalId !== 'string' && !isRehearsed}>
          <summary>Details as data</summary>
          <Exact value={details} label="Details of the dry run" />
        </details>
      )}
    </>
  )
}

/** Which time the dry run speaks of: never a preview that reads as what happened. */
function Preview({ approval: { status, requestedAt } }: { approval: Approval }) {
  const when = `made ${formatMoment(requestedAt)}`
  if (status === 'consumed') return <p className="soft">The preview, {when}. The incident shows what was done.</p>
  if (status === 'pending' || status === 'approved')
    return <p className="soft">A preview, {when}: what would happen. Nothing is done yet.</p>
  return (
    <p className="soft">
      The preview, {when}: what would have happened. <strong>None of it was done.</strong>
    </p>
  )
}

/** What was found out beforehand, line by line, and then what was not tried: neither may be taken for the other. */
function RehearsalFindings({ rehearsal: { lines, untried } }: { rehearsal: Rehearsal }) {
  return (
    <>
      {lines.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so it must be reachable by keyboard
        <section className="exact" aria-label="What was found out beforehand" tabIndex={0}>
          <pre dir="ltr">
            <Inert text={lines.join('\n')} />
          </pre>
        </section>
      )}
      {untried.length > 0 && (
        <ul className="said wrong">
          {untried.map((sentence) => (
            <li className="wraps" key={sentence}>
              <Inert text={sentence} />
            </li>
          ))}
        </ul>
      )}
    </>
  )
}
